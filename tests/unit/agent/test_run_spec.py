"""A run as the input of a resource: small, and read again as it was."""

import json
from typing import Any

import pytest

from tests.unit.cases import plan
from tfdeploy.agent.model.run_spec import RunSpec, TaskSpec


@pytest.mark.parametrize(
    "args",
    [
        {"workers": 1},
        {"chief": 1, "ps": 2, "workers": 3, "gpu_workers": 1, "evaluator": 1, "tensorboard": True},
        {"workers": 2, "artifacts": [], "env": {"A": "1"}, "flags": "never", "start_timeout": "1m"},
        {"ps": 1, "workers": 2, "elastic": {"max": 4}, "metrics": {"a": "a (.*)"}, "until": {"a": ">= 1"}},
    ],
)
def test_the_inputs_of_a_run_are_the_run(args: dict[str, Any]) -> None:
    run = plan(**args).run
    inputs = json.loads(json.dumps(run.to_inputs()))
    assert RunSpec.from_dict(inputs) == run
    assert RunSpec.from_dict(json.loads(json.dumps(run.to_dict()))) == run


def test_the_inputs_have_no_defaults() -> None:
    inputs = plan(workers=2).run.to_inputs()
    assert inputs["tasks"] == ["worker-0", "worker-1"]
    assert not {"budget", "cost_per_hour", "flags", "master", "max_workers", "serve", "artifacts"} & {*inputs}
    assert {"id", "jobs", "command", "code", "env"} <= {*inputs}


def test_a_hostname_names_job_and_index() -> None:
    assert TaskSpec.of("gpu-worker-12") == TaskSpec("gpu-worker-12", "gpu_worker", 12)
