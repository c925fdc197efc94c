"""Outputs among the arguments: what the component asks of Pulumi once it has awaited them."""

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from tests.components.mocked import Recorder, declare, run, without_secrets
from tfdeploy import TensorFlowCluster

CANARY = "canary-19ab"


class Made(pulumi.CustomResource):
    """A resource whose output `name` is its own name; a preview does not know it."""

    name: pulumi.Output[str]

    def __init__(self, name: str) -> None:
        super().__init__("test:index:Made", name, {"name": None})


def output(value: Any) -> "pulumi.Output[Any]":
    return pulumi.Output.from_input(value)


def unknown() -> "pulumi.Output[Any]":
    return output(pulumi.UNKNOWN)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is printed as information or as a warning."""
    texts: list[str] = []
    for kind in ("info", "warn"):
        monkeypatch.setattr(pulumi.log, kind, lambda text, *_, **__: texts.append(text))
    return texts


def names(recorder: Recorder) -> list[str]:
    """The names of all resources."""
    return [line.rpartition("::")[2] for line in recorder.urns().splitlines()]


def refusal(program: Callable[[], Any], preview: bool = False) -> str:
    """What the program fails with."""
    with pytest.raises(pulumi.RunError) as error:
        run(program, preview)
    return str(error.value)


def test_outputs_are_used_at_every_depth() -> None:
    def program() -> None:
        declare(
            workers=output(2.0),
            command=["python", "-c", output("1"), Made("data").name],
            env=output({"A": "b"}),
            jobs={"worker": {"env": {"B": Made("bucket").name}, "cpus": output(0.5)}},
            train_dir=pulumi.Output.concat("gs://", Made("train").name),
            context=output({"steps": 3.0, "rate": 0.5}),
        )

    recorder = run(program)
    spec = recorder.inputs["mnist-run"]["run"]
    assert {"mnist-worker-0", "mnist-worker-1"} < set(recorder.inputs)
    assert spec["command"] == ["python", "-c", "1", "data"]
    assert (spec["env"], spec["secret_env"]) == ({"A": "b"}, [])
    assert spec["jobs"]["worker"]["env"] == {"B": "bucket"}
    assert spec["train_dir"] == "gs://train"
    assert spec["context"] == '{"rate": 0.5, "steps": 3}'
    assert recorder.inputs["mnist-worker-0"]["limits"] == {"cpus": 0.5}


def test_the_cluster_depends_on_what_its_arguments_came_from() -> None:
    def program() -> None:
        declare(workers=1, env={"A": Made("bucket").name, "B": pulumi.Output.secret("c")})

    assert run(program).after["mnist-cleanup"] == ["bucket", "mnist-id"]


def test_children_of_a_protected_cluster_are_protected() -> None:
    def program() -> None:
        args: Any = {"command": ["python"], "workers": 1, "wait": "0", "env": {"A": Made("bucket").name}}
        TensorFlowCluster("mnist", args, pulumi.ResourceOptions(protect=True))

    children = {"mnist-id", "mnist-cleanup", "mnist-worker-0", "mnist-run"}
    assert run(program).protected == {"mnist", *children}


def test_what_depends_on_the_cluster_depends_on_its_run() -> None:
    def program() -> None:
        cluster = declare(workers=1, env={"A": Made("bucket").name})
        pulumi.ComponentResource("test:index:After", "after", None, pulumi.ResourceOptions(depends_on=[cluster]))

    assert "mnist-run" in run(program).after["after"]


@pytest.mark.parametrize(
    ("args", "env", "names"),
    [
        ({"env": lambda: {"PLAIN": output("a"), "TOKEN": pulumi.Output.secret(CANARY)}}, {"PLAIN": "a"}, ["TOKEN"]),
        ({"env": lambda: pulumi.Output.secret({"TOKEN": CANARY})}, {}, ["TOKEN"]),
        ({"secrets": lambda: pulumi.Output.secret({"TOKEN": CANARY})}, {}, []),
    ],
)
def test_a_secret_in_env_and_an_output_that_is_secret_as_a_whole_stay_secret(
    args: dict[str, Any], env: dict[str, str], names: list[str]
) -> None:
    recorder = run(lambda: declare(workers=1, **{key: make() for key, make in args.items()}))
    spec = recorder.inputs["mnist-run"]["run"]
    assert (spec["env"], spec["secret_env"]) == (env, names)
    assert CANARY in json.dumps(recorder.inputs["mnist-run"])
    assert CANARY not in json.dumps(without_secrets(recorder.inputs))


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({"run_id": pulumi.Output.secret}, "mnist: run_id: is secret, but this argument is stored in plain text."),
        (
            {"jobs": lambda text: {"worker": {"env": {"A": pulumi.Output.secret(text)}}}},
            "mnist: jobs.worker.env.A: is secret, but this argument is stored in plain text.",
        ),
        ({"train_dir": output}, f"mnist: train_dir: the Output has the value '{CANARY}', which is not a URL."),
        ({"workers": output}, f"mnist: workers: '{CANARY}' is a string. Use an integer from 0 to 1000."),
    ],
)
def test_an_error_is_a_sentence_and_nothing_of_the_cluster_is_registered(
    args: dict[str, Any], sentence: str, preview: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    monkeypatch.setattr("tfdeploy.program.registration.register_identity", lambda name, *_: names.append(name))
    said = refusal(lambda: declare(**{"workers": 1, **{key: make(CANARY) for key, make in args.items()}}), preview)
    assert said.startswith(sentence)
    assert names == []
    assert CANARY not in said or "secret" not in sentence


def test_a_preview_says_what_it_does_not_know_and_plans_the_rest(said: list[str]) -> None:
    def program() -> None:
        declare(workers=1, env=output({"A": unknown()}), command=["python", "-c", unknown()], train_dir=unknown())

    recorder = run(program, preview=True)
    assert "mnist-worker-0" in recorder.urns()
    spec = recorder.inputs["mnist-run"]["run"]
    for value in (spec["id"], spec["env"]["A"], spec["command"][2], spec["train_dir"]):
        assert pulumi.contains_unknowns(value)
    assert spec["command"][:2] == ["python", "-c"]
    text = "\n".join(said)
    assert "mnist on local: run <the run's id: known after the update>, 1 task" in text
    for name in ("env.A", "command[2]", "train_dir"):
        assert f"`{name}` is known after the update" in text


@pytest.mark.parametrize("name", ["workers", "backend", "jobs"])
def test_a_preview_that_does_not_know_what_shapes_the_cluster_promises_nothing(name: str, said: list[str]) -> None:
    args: dict[str, Any] = {"workers": 1, name: unknown()}
    assert names(run(lambda: declare(**args), preview=True)) == ["mnist"]
    (sentence,) = said
    assert sentence.startswith("mnist: this preview cannot show the cluster")
    assert f"only the update knows `{name}`; the update creates it, or refuses it." in sentence


def test_a_whole_env_that_is_secret_and_not_known_is_not_refused(said: list[str]) -> None:
    run(lambda: declare(workers=1, env=pulumi.Output.secret(unknown())), preview=True)
    assert "only the update knows `env`" in said[0]


def test_an_error_of_the_programs_own_apply_is_not_the_clusters() -> None:
    def read(_: str) -> str:
        raise FileNotFoundError("a file of the program's")

    with pytest.raises(FileNotFoundError, match="of the program's"):
        run(lambda: declare(workers=1, env={"A": output("x").apply(read)}))


def test_an_update_does_not_create_a_cluster_of_unknown_arguments(said: list[str]) -> None:
    assert names(run(lambda: declare(workers=1, env={"A": unknown()}))) == ["mnist"]
    assert said == ["mnist: the cluster is not created, because what `env.A` comes from was not created."]


def test_a_preview_that_cannot_plan_refuses_the_arguments_that_it_knows() -> None:
    def program() -> None:
        declare(workers=-1, backend="ec2", ec2={"vpc_id": unknown(), "instance_type": "m7i.large"})

    assert refusal(program, preview=True).startswith("mnist: workers: -1 is out of range.")


@pytest.mark.parametrize(
    "group",
    [
        {"vpc_id": unknown},
        {"spot": unknown},
        {"ebs_volumes": unknown},
        {"ssh_cidrs": lambda: ["10.0.0.0/8", unknown()]},
    ],
)
def test_a_preview_does_not_refuse_what_it_does_not_know(group: dict[str, Any]) -> None:
    ec2 = {"instance_type": "m7i.large", **{key: make() for key, make in group.items()}}
    assert names(run(lambda: declare(workers=1, backend="ec2", ec2=ec2), preview=True)) == ["mnist"]


def test_unknown_members_of_a_group_that_is_not_used_do_not_matter() -> None:
    def program() -> None:
        ec2 = {"subnet_id": unknown(), "ssh_cidrs": [unknown()], "max_machines": unknown()}
        jobs = {"worker": {"cpus": 0.5, "ec2": {"spot": unknown()}}}
        declare(workers=1, container={"volumes": [unknown()]}, ec2=ec2, jobs=jobs, docker=unknown())

    recorder = run(program, preview=True)
    assert recorder.inputs["mnist-worker-0"]["limits"] == {"cpus": 0.5}
    assert isinstance(recorder.inputs["mnist-run"]["run"]["id"], str)
