"""What `tfdeploy run` makes of its options."""

from typing import Any

import pytest

from tests.unit.simulation import running
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.agent.model.run_state import Ended, RunResult, RunState, TaskState
from tfdeploy.cli.command_table import BY_NAME
from tfdeploy.cli.parser import command_parser
from tfdeploy.cli.run.cluster_arguments import arguments, exit_code
from tfdeploy.errors import SpecError


def made(options: str, command: str = "python train.py", user: str = "") -> dict[str, Any]:
    parsed = command_parser(BY_NAME["run"], "run")[0].parse([*options.split(), *command.split()], has_remainder=True)
    parsed.code = "" if parsed.code == "." else parsed.code
    return arguments(parsed, user)


def test_options_become_arguments() -> None:
    options = "--workers=2 --worker-cpus=1.5 --worker-memory=1024 --worker-gpus=1 --ps=1 --ps-memory=2GiB --on=docker"
    options += " --code=/work --image=tf -e A=b=c --volume=/a:/b:ro"
    assert made(options, "python a.py --index={task_index} {x:1}", "1234:5678") == {
        "command": ["python", "a.py", "--index={task_index}", "{x:1}"],
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


def test_what_is_set_takes_the_place_of_an_argument() -> None:
    assert "restart" not in made('--set restart={"maximum":2} --set stop_grace_period=1s')


def test_the_caller_is_the_user_of_containers_on_a_docker_engine_alone() -> None:
    assert "container" not in made("", user="1234:5678"), "a process has the user of its parent"
    assert "container" not in made("--on=ec2", user="1234:5678"), "the caller has no user id on EC2"
    assert made("--on=docker", user="1234:5678")["container"] == {"user": "1234:5678"}
    overridden = made("--on=docker --image=tf --set container.user=root", user="1234:5678")
    assert overridden["container"] == {"image": "tf"}, "--set overrides"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("-- {worker_index}", "{worker_index} is not a placeholder"),
        ("--workers=0", "At least one worker"),
        ("--here --on=docker", "--here: cannot be with --on docker"),
        ("--image=tf", "--on docker"),
        ("--volume=/a:/b", "'/a:/b' cannot be had without containers"),
        ("--env=A", "'A' has no value"),
        ("--set =x", "'=x' has no value"),
        ("--set ec2={} --set ec2.spot=true", "ec2 has a value and a member spot"),
    ],
)
def test_what_cannot_be_is_refused(options: str, word: str) -> None:
    with pytest.raises(SpecError) as refused:
        made(options)
    assert word in str(refused.value)


def test_without_containers_the_same_folder_twice_is_no_volume() -> None:
    assert "container" not in made("--volume=/nfs/mnist:/nfs/mnist")


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
    world = running(ps=1, workers=2, elastic={"max": 4}, restart={"maximum": 0})
    world.exit("worker-1", 5)
    world.wait(60)
    world.exit("worker-0", 3)
    assert exit_code(world.job) == 3
