"""Bad input is refused before anything is registered, in preview and in update alike."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components.mocked import declare, refused, run


def refusal(name: str = "mnist", preview: bool = True, config: dict[str, str] | None = None, **args: Any) -> str:
    """What the refusal says; nothing may have been registered by then."""
    said: list[str] = []

    def program() -> None:
        said.append(refused(lambda: declare(name, **args)))

    assert run(program, preview, **(config or {})).urns() == ""
    return said[0]


WHOLE = "It takes a whole number from"
PLACES = "and no machine has that free. Ask for less, or for fewer tasks."
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"workers": -1}, "mnist: workers: is -1.", f"{WHOLE} 0 to 1000."),
    ({"ps": -2, "workers": 1}, "mnist: ps: is -2.", f"{WHOLE} 0 to 1000."),
    ({"chief": 2}, "mnist: chief: is 2.", f"{WHOLE} 0 to 1."),
    ({"workers": "two"}, "mnist: workers: is 'two', of type str.", "It takes a whole number."),
    ({}, "mnist: workers: and ps, chief, evaluator are all 0", "there is no task at all"),
    ({"workers": 0}, "mnist: workers: and ps, chief, evaluator are all 0", "Give workers=1 or more."),
    ({"ps": 1}, "mnist: workers: is 0: ps alone trains nothing.", "Give workers or chief, or serve=True."),
    ({"workers": 1, "worker": 1}, "mnist: worker: is no argument of TensorFlowCluster.", "It knows command, "),
    (
        {"workers": 1, "jobs": {"wroker": {}}},
        "mnist: jobs: 'wroker' is no job of this cluster.",
        "Its jobs are: worker.",
    ),
    (
        {"workers": 1, "jobs": {"worker": {"port": 70000}}},
        "mnist: jobs: worker: port: is 70000.",
        f"{WHOLE} 1 to 65535.",
    ),
    ({"workers": 1, "success": "chief"}, "mnist: success: 'chief' needs a chief", "Choose another rule."),
    ({"workers": 1, "metrics": {"a": "("}}, "mnist: metrics: a: '(' is no regular expression", "Mend it."),
    ({"workers": 1, "wait": "soon"}, "mnist: wait: 'soon' is no duration.", "up to a year."),
    ({"workers": 1, "backend": "mesos"}, "backend: 'mesos' is unknown.", "It takes one of: local, docker, ec2."),
    ({"workers": 1, "code": "nowhere"}, "mnist: code: ", "nowhere is not there. Name a folder"),
    (
        {"workers": 1, "command": ["no-such-program"]},
        "mnist: command: the program 'no-such-program'",
        "is not to be found",
    ),
    ({"workers": 1, "command": ["python", "no.py"]}, "mnist: command: 'no.py'", "is no file of `code`."),
    (
        {"workers": 1, "data_dir": "nowhere"},
        "mnist: data_dir: ",
        "nowhere is no folder. Name one that is there, or a URL.",
    ),
    (
        {"workers": 1, "requirements": ["not a package"]},
        "mnist: requirements: 'not a package' names no package",
        "It takes",
    ),
    ({"workers": 1, "jobs": {"worker": {"cpus": 100_000}}}, "mnist: worker-0: asks for 100000 cpus,", PLACES),
    ({"workers": 1, "jobs": {"worker": {"gpus": 1_000}}}, "mnist: worker-0: asks for 1000 gpus,", PLACES),
    ({"workers": 1, "jobs": {"worker": {"memory": "900TiB"}}}, "mnist: worker-0: asks for 900 TiB of memory,", PLACES),
    ({"workers": 1, "name": "a_b"}, "TensorFlowCluster: the name 'a_b' cannot be", "A name begins with a letter"),
]


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize(("args", "start", "remedy"), REFUSED)
def test_a_refusal_comes_before_anything_is_registered(
    args: dict[str, Any], start: str, remedy: str, preview: bool
) -> None:
    said = refusal(preview=preview, **args)
    assert said.startswith(start)
    assert remedy in said


def test_a_refusal_of_the_configuration_comes_before_anything_is_registered() -> None:
    said = refusal(config={"workers": "many"})
    assert said.startswith("configuration tfdeploy:workers: 'many' is not a whole number.")


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_taken_port_is_refused(taken_port: int) -> None:
    said = refusal(workers=1, jobs={"worker": {"port": taken_port}})
    assert said == f"mnist: jobs: worker: port: {taken_port} (for worker-0) is taken. Choose another, or none."


def test_nothing_is_written_before_something_stands(tmp_path: Path) -> None:
    run(lambda: declare(ps=1, workers=1), preview=True)
    refusal(workers=-1)
    assert list(tmp_path.iterdir()) == []
