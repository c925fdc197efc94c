"""Whatever the arguments are, they become a plan or a refusal that says where and what would do."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.cases import inventory
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.args import TensorFlowClusterArgs
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import Plan, make_plan
from tfdeploy.plan.scheduler import Machine
from tfdeploy.spec.cluster import cluster_spec

_TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12)
_DURATION = st.one_of(st.integers(0, 10_000), st.sampled_from(["0", "90s", "10m", "1h30m", "1.5"]))
_ENV = st.dictionaries(st.from_regex(r"\A[A-Z]{2,6}\Z"), _TEXT, max_size=2)
_ENDS = st.sampled_from(["any", "signal", "oom", "0", "3", "64-78", "255"])
_RESTART = st.fixed_dictionaries(
    {}, optional={"maximum": st.integers(0, 9), "backoff": _DURATION, "on": st.lists(_ENDS, max_size=3)}
)
_SIZE = st.one_of(st.integers(0, 2**40), st.sampled_from(["2GiB", "512MiB", "1.5G"]))
_IMAGE = st.sampled_from(["python", "tensorflow/tensorflow:2.20.0", f"registry:5000/a/b@sha256:{'0' * 64}"])
_CONTAINER = {
    "image": _IMAGE,
    "user": st.sampled_from(["root", "1000:1000", "me:users"]),
    "volumes": st.lists(st.sampled_from(["/a:/b:ro", "cache:/cache", "type=tmpfs,target=/scratch"]), max_size=3),
    "shm_size": _SIZE,
    "placement": st.lists(st.sampled_from(["rack:CLUSTER", "rack:MAX_PER:9", "zone:LIKE:a.*"]), max_size=2),
}
_INSTANCE: dict[str, st.SearchStrategy[Any]] = {
    "instance_type": st.sampled_from(["m7i.large", "g6.xlarge", "u7i-12tb.224xlarge"]),
    "ami": st.sampled_from(["ami-0123456789abcdef0", "ssm:/aws/service/x/image_id", "deep-learning"]),
    "spot": st.booleans(),
    "root_volume_size": _SIZE,
    "budget": st.floats(0.01, 9_999),
    "max_lifetime": st.one_of(st.integers(1, 10_000), st.sampled_from(["never", "72h"])),
}
_JOB = st.fixed_dictionaries(
    {},
    optional={
        "cpus": st.floats(0, 2),
        "memory": _SIZE,
        "gpus": st.integers(0, 2),
        "port": st.integers(1, 65_000),
        "env": _ENV,
        "restart": _RESTART,
        "container": st.fixed_dictionaries({}, optional=_CONTAINER),
    },
)
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)),
    max_leaves=5,
)

LIKELY: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"command": st.lists(_TEXT, max_size=3).map(lambda rest: ["python", *rest]), "workers": st.integers(1, 4)},
    optional={
        "code": _TEXT,
        "requirements": st.lists(st.sampled_from(["six", "pandas==2.2.3"]), max_size=2),
        "ps": st.integers(0, 3),
        "chief": st.booleans(),
        "evaluator": st.booleans(),
        "gpu_workers": st.integers(0, 2),
        "tensorboard": st.booleans(),
        "jobs": st.fixed_dictionaries({}, optional={"worker": _JOB}),
        "metrics": st.dictionaries(_TEXT, st.sampled_from([r"accuracy: (\S+)", "loss"]), max_size=2),
        "env": _ENV,
        "data_dir": _TEXT,
        "train_dir": _TEXT,
        "context": st.dictionaries(_TEXT, _JSON, max_size=3),
        "flags": st.sampled_from(["auto", "always", "never"]),
        "success": st.sampled_from(["worker-0", "all-workers"]),
        "restart": _RESTART,
        "stop_grace_period": _DURATION,
        "wait": _DURATION,
        "run_id": _TEXT,
        "log_lines": st.integers(0, 1_000),
        "backend": st.sampled_from(["local", "docker", "ec2"]),
        "ec2": st.fixed_dictionaries({}, optional=_INSTANCE),
        "container": st.fixed_dictionaries({}, optional=_CONTAINER),
    },
)
"""Every one of these is a cluster."""

_ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["1", "10m", "2GiB", "any", "chief", "worker-0", "3-4", "ps", "(", 10**40]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["ps", "worker", "gpu_worker", "on", "port", "env", "A", ""]), inner, max_size=3
        ),
    ),
    max_leaves=5,
)

SPOILT: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda likely, spoilt: {**likely, **spoilt},
    LIKELY,
    st.dictionaries(st.sampled_from(sorted(TensorFlowClusterArgs.__annotations__)), _ANYTHING, max_size=2),
)
"""Some of these are a cluster, most are not."""

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
