"""Bad input is refused before anything is registered, in preview and in update alike. `unit/snapshots/errors.txt` has more."""

import errno
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components.mocked import declare, refused, run
from tfdeploy import registry


def refusal(name: str = "mnist", preview: bool = True, config: dict[str, str] | None = None, **args: Any) -> str:
    """What the refusal says; nothing may have been registered by then."""
    said: list[str] = []

    def program() -> None:
        said.append(refused(lambda: declare(name, **args)))

    assert run(program, preview, **(config or {})).urns() == ""
    return said[0]


PLACES = "and no machine has that free. Ask for less, or for fewer tasks."
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"workers": -1}, "mnist: workers: -1 is", "0 to 1000."),
    ({"workers": "two"}, "mnist: workers: 'two' is a string.", "Use an integer from 0 to 1000."),
    ({}, "mnist: workers: the cluster has no task.", "Set workers=1 or more."),
    ({"workers": 1, "backend": "mesos"}, "mnist: backend: 'mesos' is not valid.", 'Use "local", "docker" or "ec2".'),
    ({"workers": 1, "code": "nowhere"}, "mnist: code: ", "nowhere does not exist. Name a folder"),
    (
        {"workers": 1, "command": ["no-such-program"]},
        "mnist: command: the program 'no-such-program'",
        "Correct its name,",
    ),
    (
        {"workers": 1, "command": ["./train.sh"]},
        "mnist: command: './train.sh' is neither a program",
        "Correct its path.",
    ),
    ({"workers": 1, "command": ["python", "no.py"]}, "mnist: command: 'no.py'", "is not a file of `code`."),
    ({"workers": 1, "data_dir": "nowhere"}, "mnist: data_dir: ", "nowhere is not a folder. Name an existing folder"),
    ({"workers": 1, "requirements": ["not a package"]}, "mnist: requirements: 'not a package'", ""),
    (
        {"workers": 1, "resume_from": "mistyped"},
        "mnist: resume_from: there is no run 'mistyped'",
        "The record has no run yet. Remove the argument",
    ),
    ({"workers": 1, "jobs": {"worker": {"cpus": 100_000}}}, "mnist: worker-0: asks for 100000 cpus,", PLACES),
    ({"workers": 1, "jobs": {"worker": {"gpus": 1_000}}}, "mnist: worker-0: asks for 1000 gpus,", PLACES),
    ({"workers": 1, "jobs": {"worker": {"memory": "900TiB"}}}, "mnist: worker-0: asks for 900 TiB of memory,", PLACES),
    ({"workers": 1, "name": "a_b"}, "TensorFlowCluster: the name 'a_b' is not valid", "Use a letter"),
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
    assert said.startswith("configuration tfdeploy:workers: 'many' is not an integer.")


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_taken_port_is_refused(taken_port: int) -> None:
    said = refusal(workers=1, jobs={"worker": {"port": taken_port}})
    assert said == f"mnist: jobs.worker.port: {taken_port} (for worker-0) is in use. Choose another, or none."


def test_nothing_is_written_before_something_stands(tmp_path: Path) -> None:
    run(lambda: declare(ps=1, workers=1), preview=True)
    refusal(workers=-1)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/state/registry/mnist.json")

    monkeypatch.setattr(registry, "write", full)
    said: list[str] = []
    run(lambda: said.append(refused(lambda: declare(workers=1))))
    assert said == [
        "mnist: /state/registry/mnist.json: No space left on device. Free space on that disk, and run the command again."
    ]
