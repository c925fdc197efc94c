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


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"workers": -1}, "mnist: workers: is -1."),
        ({"workers": 0}, "mnist: workers: and ps, chief, evaluator are all 0"),
        ({"workers": 1, "worker": 1}, "mnist: worker: is no argument of TensorFlowCluster."),
        ({"workers": 1, "backend": "mesos"}, "backend: 'mesos' is unknown."),
        ({"workers": 1, "code": "nowhere"}, "mnist: code: "),
        ({"workers": 1, "command": ["no-such-program"]}, "mnist: command: the program 'no-such-program'"),
        ({"workers": 1, "command": ["python", "no.py"]}, "mnist: command: 'no.py' is no file of `code`."),
        ({"workers": 1, "data_dir": "nowhere"}, "mnist: data_dir: "),
        ({"workers": 1, "requirements": ["not a package"]}, "mnist: requirements: 'not a package' names no package"),
        ({"workers": 1, "jobs": {"worker": {"cpus": 100_000}}}, "mnist: worker-0: asks for 100000 cpus"),
        ({"workers": 1, "jobs": {"worker": {"gpus": 1_000}}}, "mnist: worker-0: asks for 1000 gpus"),
        ({"workers": 1, "name": "a_b"}, "TensorFlowCluster: the name 'a_b' cannot be"),
    ],
)
def test_a_refusal_comes_before_anything_is_registered(args: dict[str, Any], message: str, preview: bool) -> None:
    assert refusal(preview=preview, **args).startswith(message)


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
