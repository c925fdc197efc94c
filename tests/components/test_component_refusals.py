"""Bad input is refused before anything is registered, in preview and in update alike. `unit/snapshots/errors.txt` has more."""

import errno
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.components.mocked import declare, refused, run
from tfdeploy import TensorFlowCluster, registry


def told(make: Callable[[], Any], preview: bool = False, **config: str) -> str:
    """What the refusal of a cluster says; nothing may have been registered by then."""
    said: list[str] = []
    assert run(lambda: said.append(refused(make)), preview, **config).urns() == ""
    return said[0]


def refusal(preview: bool = True, config: dict[str, str] | None = None, **args: Any) -> str:
    """The same of a cluster with these arguments."""
    return told(lambda: declare(**args), preview, **(config or {}))


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"workers": -1}, "mnist: workers: -1 is", "0 to 1000."),
    ({"workers": 1, "command": ["python", "no.py"]}, "mnist: command: 'no.py'", "is not a file of `code`."),
    ({"workers": 1, "data_dir": "nowhere"}, "mnist: data_dir: ", "nowhere is not a folder. Name an existing folder"),
    (
        {"workers": 1, "resume_from": "mistyped"},
        "mnist: resume_from: there is no run 'mistyped'",
        "The record has no run yet. Remove the argument",
    ),
    ({"workers": 1, "jobs": {"worker": {"cpus": 100_000}}}, "mnist: worker-0: asks for 100000 cpus,", "Ask for less"),
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


UNKNOWN = {
    "run_idd": "Did you mean 'run_id'?",
    "worker": "Did you mean 'workers'?",
    "gpus": 'Set it for a job: jobs={"worker": {"gpus": …}}.',
    "instance_type": 'Move it into the group `ec2`: ec2={"instance_type": …}.',
    "xyz": "Run `tfdeploy options` for all of them.",
    "ec2.instance_type": "A member of a group needs --path: pulumi config set --path 'tfdeploy:ec2.instance_type' VALUE.",
}


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("key", UNKNOWN)
def test_a_key_of_the_configuration_that_is_not_an_argument_is_refused(key: str, preview: bool) -> None:
    said = refusal(preview=preview, config={key: "2"}, workers=1)
    removal = f"Remove it by `pulumi config rm tfdeploy:{key}`."
    assert said == f"configuration tfdeploy:{key}: is not an argument of TensorFlowCluster. {UNKNOWN[key]} {removal}"


def test_a_project_of_the_same_name_has_its_own_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulumi.get_project", lambda: "tfdeploy")
    assert "mnist-run" in run(lambda: declare(workers=1), True, own_key="2").urns()


TWO_VALUES: list[tuple[dict[str, str], dict[str, Any], list[str]]] = [
    ({"workers": "5"}, {"workers": 3}, ["tfdeploy:workers=5 has no effect: the program sets it to 3"]),
    ({"workers": "3"}, {"workers": 3}, []),
    ({"workers": "5"}, {"workers": None, "ps": 0, "chief": True}, []),
    (
        {"jobs": '{"worker": {"cpus": 1, "memory": "1GiB"}}'},
        {"workers": 1, "jobs": {"worker": {"cpus": 0.5}}},
        ["tfdeploy:jobs.worker.cpus=1 has no effect: the program sets it to 0.5"],
    ),
    (
        {"env": '{"A": "hush", "B": "1"}'},
        {"workers": 1, "env": {"A": "2"}},
        ["tfdeploy:env.A has no effect: the program sets it"],
    ),
    ({"requirements": "[]"}, {"workers": 1, "requirements": ()}, []),
    ({"tensorboard": "0"}, {"workers": 1, "tensorboard": False}, []),
]


@pytest.mark.parametrize(("config", "args", "said"), TWO_VALUES)
def test_an_argument_that_program_and_configuration_set_says_which_one_counts(
    config: dict[str, str], args: dict[str, Any], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", lambda text, *_, **__: warnings.append(text))
    run(lambda: declare(**args), True, **config)
    assert [text for text in warnings if "has no effect" in text] == [f"mnist: configuration {text}." for text in said]


MISPLACED: list[tuple[tuple[Any, ...], str]] = [
    (("a", ["python", "train.py"]), "a: the second argument is a mapping of arguments, and not of type list"),
    (("a", "python train.py"), "a: the second argument is a mapping of arguments, and not of type str"),
    (
        ("a", pulumi.ResourceOptions()),
        "a: the second argument is a mapping of arguments, and not of type ResourceOptions",
    ),
    (("a", {"workers": 1}, {"protect": True}), "a: the third argument is pulumi.ResourceOptions, and not of type dict"),
    ((["python"],), "the first argument is the name, a string, and not of type list"),
    (({"workers": 1},), "the first argument is the name, a string, and not of type dict"),
]


@pytest.mark.parametrize(("args", "wrong"), MISPLACED)
def test_positional_arguments_in_the_wrong_place_are_one_sentence(args: tuple[Any, ...], wrong: str) -> None:
    form = 'TensorFlowCluster("NAME", command=["python", "train.py"], workers=2, opts=…)'
    said = told(lambda: TensorFlowCluster(*args))
    assert said == f"TensorFlowCluster: {wrong}. Name the arguments: {form}."


def test_a_script_of_the_code_that_cannot_be_started_is_refused(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "run.sh").write_text("#!/bin/sh\r\npython train.py\r\n")
    (code / "run.sh").chmod(0o755)
    said = refusal(workers=1, code=str(code), command=["./run.sh"])
    assert said.startswith("mnist: command: './run.sh' has Windows line ends")
    said = refusal(workers=1, code=str(code), command=["run.sh"])
    assert said.endswith('Write "./run.sh": it is a file of `code`.')


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
