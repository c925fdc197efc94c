"""What `tfdeploy run` makes of its options."""

from dataclasses import replace
from typing import Any

import pytest

from tfdeploy.cli.commanding import Share, Wanted, arguments, exit_code, pairs
from tfdeploy.errors import SpecError

WANTED = Wanted(["python", "train.py"], Share(2))


def test_options_become_arguments() -> None:
    wanted = Wanted(
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
    assert arguments(wanted) == {
        "command": ["python", "a.py", "--index={task_index}", "{x: 1}"],
        "workers": 2,
        "ps": 1,
        "jobs": {"worker": {"cpus": 1.5, "memory": "1024MiB", "gpus": 1}, "ps": {"memory": "2GiB"}},
        "backend": "docker",
        "code": "/work",
        "image": "tf",
        "user": "1234:5678",
        "env": {"A": "b=c"},
        "volumes": ["/a:/b:ro"],
        "restart": {"maximum": 0},
        "wait": "0",
    }


def test_what_is_set_takes_the_place_of_an_argument() -> None:
    wanted = replace(WANTED, settings=['restart={"maximum": 2}', "grace=1s"])
    assert "restart" not in arguments(wanted)
    assert pairs("--set", wanted.settings) == {"restart": '{"maximum": 2}', "grace": "1s"}


def test_the_caller_is_the_user_of_containers_on_a_docker_engine_alone() -> None:
    wanted = replace(WANTED, user="1234:5678")
    assert "user" not in arguments(wanted), "a process has the user of its parent"
    assert "user" not in arguments(replace(wanted, backend="ec2")), "the machines are no machines of the caller's"
    assert arguments(replace(wanted, backend="docker"))["user"] == "1234:5678"
    assert "user" not in arguments(replace(wanted, backend="docker", settings=["user=root"])), "it is set otherwise"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"command": ["python", "a.py", "{worker_index}"]}, "{worker_index} is no placeholder"),
        ({"command": ["python", "a.py", "--index={index}"]}, "{index} is no placeholder"),
        ({"workers": Share(0)}, "At least one worker"),
        ({"here": True, "backend": "docker"}, "--here: cannot be with --on docker"),
        ({"image": "tf"}, "--on docker"),
        ({"volumes": ["/a:/b"]}, "'/a:/b' cannot be had without containers"),
        ({"env": ["A"]}, "'A' has no value"),
        ({"settings": ["=x"]}, "'=x' has no value"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(SpecError) as refused:
        arguments(replace(WANTED, **changes))
    assert word in str(refused.value)


def test_without_containers_the_same_folder_twice_is_no_volume() -> None:
    assert "volumes" not in arguments(replace(WANTED, volumes=["/nfs/mnist:/nfs/mnist"]))


def job(state: str, **tasks: tuple[str, int | None, float]) -> dict[str, Any]:
    rows = {
        name: {"job": name, "state": how, "exit_code": code, "ended": ended}
        for name, (how, code, ended) in tasks.items()
    }
    return {"verdict": [state, "", 1.0], "tasks": rows}


def test_the_exit_code_is_the_jobs() -> None:
    assert exit_code(None) == 1
    assert exit_code({"verdict": None, "tasks": {}}) == 1
    assert exit_code(job("succeeded", a=("succeeded", 0, 1.0))) == 0
    assert exit_code(job("failed", a=("failed", 3, 2.0), b=("killed", 139, 1.0), c=("stopped", None, 0.5))) == 139
    assert exit_code(job("failed", tensorboard=("failed", 1, 1.0), a=("failed", 3, 2.0))) == 3
    assert exit_code(job("failed", a=("out of memory", 137, 2.0))) == 137
    assert exit_code(job("failed", a=("stopped", None, 2.0))) == 1
    assert exit_code(job("stopped", a=("stopped", None, 2.0))) == 1
