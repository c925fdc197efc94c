"""`heal` brings back what died, and refuses whatever else an update would do."""

from typing import Any

import pytest

from tfdeploy.cli.mending import Mending, mending

TASK, RUN = "pulumi-python:dynamic/tfdeploy:Task", "pulumi-python:dynamic/tfdeploy:Run"
SWEEPER, SWARM = "pulumi-python:dynamic/tfdeploy:Sweeper", "pulumi-python:dynamic/tfdeploy:Swarm"
INSTANCE = "aws:ec2/instance:Instance"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
Step = dict[str, Any]


def state(kind: str, **inputs: Any) -> Step:
    return {"type": kind, "inputs": {"__provider": "pickled", **inputs}}


def step(op: str, name: str, old: Step | None = None, new: Step | None = None) -> Step:
    states = {key: value for key, value in (("oldState", old), ("newState", new)) if value}
    return {"op": op, "urn": f"urn:pulumi:dev::p::type::{name}", **states}


def died(name: str, was: Step, new: Step) -> list[Step]:
    return [step("refresh", name, was), step("create", name, None, new)]


def test_nothing_has_died_where_no_step_does_anything() -> None:
    stands = state(TASK, hostname="worker-0")
    steps = [step("refresh", "t-worker-0", stands, stands), step("same", "t-worker-0", stands, stands)]
    assert mending(steps) == Mending((), ())


def test_what_stood_before_and_is_made_as_it_was_comes_back() -> None:
    task, run = state(TASK, hostname="worker-0", token="[secret]"), state(RUN, run={"id": "a", "command": ["x"]})
    made = state(TASK, hostname="worker-0", token=UNKNOWN)
    assert mending([*died("t-worker-0", task, made), *died("t-run", run, run)]) == Mending(("t-worker-0", "t-run"), ())


@pytest.mark.parametrize(
    ("steps", "edit"),
    [
        ([step("create", "t-worker-1", None, state(TASK))], "t-worker-1 would be made, and has not stood before"),
        ([step("delete", "t-worker-1", state(TASK))], "t-worker-1 would go"),
        (
            died("t-run", state(RUN, run={"command": ["a"]}), state(RUN, run={"command": ["a", "b"]})),
            "t-run would get another run.command",
        ),
        (
            [step("update", "t-sweeper", state(SWEEPER, hostnames=["a"]), state(SWEEPER, hostnames=["a", "b"]))],
            "t-sweeper would get another hostnames",
        ),
        (
            died("t-worker-0", state(TASK, memory=1, gpus=""), state(TASK, memory=2, gpus="0")),
            "t-worker-0 would get another gpus and another memory",
        ),
    ],
)
def test_whatever_else_an_update_would_do_is_an_edit(steps: list[Step], edit: str) -> None:
    assert mending(steps) == Mending((), (edit,))


SECRETIVE = state(RUN, run={"id": "a"}, secrets="[secret]", token="[secret]")


def test_a_secret_that_was_edited_is_an_edit() -> None:
    changed = step("update", "t-run", SECRETIVE, SECRETIVE)
    assert mending([changed]) == Mending((), ("t-run would get another secrets",))
    assert mending([{**changed, "detailedDiff": {"secrets.A": {}}}]).edits == ("t-run would get another secrets",)
    assert mending([{**changed, "diffReasons": ["tags"]}]) == Mending(("t-run",), ())
    assert mending(died("t-run", SECRETIVE, SECRETIVE)) == Mending(("t-run",), ())


def machine(life: str, kind: str = "m7i.large", **others: Any) -> Step:
    return state(INSTANCE, instanceType=kind, userData=life, tags={"tfdeploy:life": life, "Name": "a"}, **others)


def members(life: str, label: str = "a") -> Step:
    one = {"machine": "w0", "life": life, "instance_id": life, "labels": {"zone": label}, "kind": {"image_id": life}}
    return state(SWARM, members=[one], lifetime=60)


def test_a_machine_that_died_is_made_again_and_what_hangs_on_it_follows() -> None:
    steps = [
        step("create-replacement", "w0", machine("1"), machine("2", ami=UNKNOWN)),
        step("replace", "w0", machine("1"), machine("2")),
        step("delete-replaced", "w0", machine("1")),
        step("update", "t-swarm", members("1"), members("2")),
        step(
            "update", "t-worker-0", state(TASK, supplies={"network": "n1 x"}), state(TASK, supplies={"network": "n2 x"})
        ),
    ]
    assert mending(steps) == Mending(("w0", "t-swarm", "t-worker-0"), ())


def test_a_machine_of_another_kind_or_elsewhere_is_an_edit() -> None:
    assert mending([step("replace", "w0", machine("1"), machine("2", "m7i.xlarge"))]).edits == (
        "w0 would get another instanceType",
    )
    assert mending([step("update", "t-swarm", members("1"), members("2", "b"))]).edits == (
        "t-swarm would get another members.labels.zone",
    )
