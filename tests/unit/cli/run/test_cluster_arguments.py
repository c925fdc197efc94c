"""What `tfdeploy run` makes of its options."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.simulation import World
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.agent.model.run_state import Ended, RunResult, RunState, TaskState
from tfdeploy.cli.run.cluster_arguments import RunRequest, Share, arguments, exit_code
from tfdeploy.errors import SpecError
from tfdeploy.spec.cluster import cluster_spec

REQUEST = RunRequest(["python", "train.py"], Share(2))


def test_options_become_arguments() -> None:
    request = RunRequest(
        ["python", "a.py", "--index={task_index}", "{x: 1}"],
        Share(2, 1.5, "1024", 1),
        Share(1, memory="2GiB"),
        backend="docker",
        code="/work",
        image="tf",
        user="1234:5678",
        env=["A=b=c"],
        volumes=["/a:/b:ro"],
    )
    assert arguments(request) == {
        "command": ["python", "a.py", "--index={task_index}", "{x: 1}"],
        "workers": 2,
        "ps": 1,
        "jobs": {"worker": {"cpus": 1.5, "memory": "1024MiB", "gpus": 1}, "ps": {"memory": "2GiB"}},
        "backend": "docker",
        "code": "/work",
        "container": {"image": "tf", "user": "1234:5678", "volumes": ["/a:/b:ro"]},
        "env": {"A": "b=c"},
        "restart": {"maximum": 0},
        "wait": "0",
    }


def test_the_rule_of_success_is_that_of_up_unless_it_is_set() -> None:
    assert (
        cluster_spec("run", arguments(REQUEST)).success == cluster_spec("up", {"command": ["a"], "workers": 2}).success
    )


def test_what_is_set_takes_the_place_of_an_argument() -> None:
    request = replace(REQUEST, settings=['restart={"maximum": 2}', "stop_grace_period=1s"])
    assert "restart" not in arguments(request)


def test_the_caller_is_the_user_of_containers_on_a_docker_engine_alone() -> None:
    request = replace(REQUEST, user="1234:5678")
    assert "container" not in arguments(request), "a process has the user of its parent"
    assert "container" not in arguments(replace(request, backend="ec2")), "the caller has no user id on EC2"
    assert arguments(replace(request, backend="docker"))["container"] == {"user": "1234:5678"}
    overridden = replace(request, backend="docker", image="tf", settings=["container.user=root"])
    assert arguments(overridden)["container"] == {"image": "tf"}, "--set overrides"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"command": ["python", "a.py", "{worker_index}"]}, "{worker_index} is not a placeholder"),
        ({"command": ["python", "a.py", "--index={index}"]}, "{index} is not a placeholder"),
        ({"workers": Share(0)}, "At least one worker"),
        ({"in_terminal": True, "backend": "docker"}, "--here: cannot be with --on docker"),
        ({"image": "tf"}, "--on docker"),
        ({"volumes": ["/a:/b"]}, "'/a:/b' cannot be had without containers"),
        ({"env": ["A"]}, "'A' has no value"),
        ({"settings": ["=x"]}, "'=x' has no value"),
        ({"settings": ["ec2={}", "ec2.spot=true"]}, "ec2 has a value and a member spot"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(SpecError) as refused:
        arguments(replace(REQUEST, **changes))
    assert word in str(refused.value)


def test_without_containers_the_same_folder_twice_is_no_volume() -> None:
    assert "container" not in arguments(replace(REQUEST, volumes=["/nfs/mnist:/nfs/mnist"]))


def job(state: str, **tasks: tuple[str, int | None, float]) -> RunState:
    rows = {
        name: TaskState(name, name, 0, state=how, end=None if code is None else Ended(code), ended=ended)
        for name, (how, code, ended) in tasks.items()
    }
    return RunState(RunSpec("0123", [], {}), 1.0, rows, result=RunResult(state, "", 1.0))


def test_the_exit_code_is_the_jobs() -> None:
    assert exit_code(None) == 1
    assert exit_code(RunState(RunSpec("0123", [], {}), 1.0)) == 1
    assert exit_code(job("succeeded", a=("succeeded", 0, 1.0))) == 0
    assert exit_code(job("failed", a=("failed", 3, 2.0), b=("killed", 139, 1.0), c=("stopped", None, 0.5))) == 139
    assert exit_code(job("failed", tensorboard=("failed", 1, 1.0), a=("failed", 3, 2.0))) == 3
    assert exit_code(job("failed", a=("out of memory", 137, 2.0))) == 137
    assert exit_code(job("failed", a=("stopped", None, 2.0))) == 1
    assert exit_code(job("stopped", a=("stopped", None, 2.0))) == 1


def test_the_exit_code_is_not_that_of_an_optional_worker() -> None:
    made = World(ps=1, workers=2, elastic={"max": 4}, restart={"maximum": 0})
    made.come()
    made.exit("worker-1", 5)
    made.wait(60)
    made.exit("worker-0", 3)
    assert exit_code(made.job) == 3
