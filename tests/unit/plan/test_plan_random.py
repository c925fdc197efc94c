"""Whatever the arguments are, they become a plan or a refusal that says where and what would do."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.cases import inventory
from tests.unit.likely import LIKELY, SPOILT
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import Plan, make_plan
from tfdeploy.plan.scheduler import Machine
from tfdeploy.spec.cluster import cluster_spec

LABELS = {"rack": "left", "zone": "a1"}
LARGE = Machine("large", "Master", "local", "", cpus=1e6, memory=2**60, gpus=tuple(map(str, range(64))), labels=LABELS)


def planned(name: str, args: dict[str, Any]) -> Plan:
    spec = cluster_spec(name, args)
    return make_plan(spec, inventory(spec, LARGE, train_dir=spec.train_dir), "c0de")


@given(LIKELY)
def test_likely_arguments_make_a_plan_that_survives_json(args: dict[str, Any]) -> None:
    plan = planned("mnist", args)
    assert RunSpec.from_dict(json.loads(json.dumps(plan.run.to_dict(), allow_nan=False))) == plan.run
    assert plan == planned("mnist", args)


@given(st.one_of(st.just("mnist"), st.text(max_size=5)), SPOILT)
@example("mnist", {"command": ["a"], "workers": 1, "jobs": {"worker": {"memory": "9" * 400}}})
@example("mnist", {"command": ["a"], "workers": 1, "metrics": {"m": "(" * 5000 + ")" * 5000}})
@example("\u212a", {"command": ["a"], "workers": 1})
def test_spoilt_arguments_make_a_plan_or_are_refused(name: str, args: dict[str, Any]) -> None:
    try:
        json.dumps(planned(name, args).run.to_dict(), allow_nan=False)
    except SpecError as refusal:
        said = str(refusal)
        assert said == f"{refusal.where}: {refusal.wrong}. {refusal.remedy}"  # noqa: PT017
        assert all([refusal.where, refusal.wrong, refusal.remedy])  # noqa: PT017


@given(LIKELY, st.text(min_size=1))
def test_a_setting_that_nobody_reads_is_refused(args: dict[str, Any], name: str) -> None:
    with pytest.raises(SpecError) as refusal:
        cluster_spec("mnist", {**args, "jobs": {"worker": {f"{name}!": 1}}})
    assert refusal.value.where == f"mnist: jobs.worker.{name}!"
