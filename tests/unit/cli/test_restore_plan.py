"""`restart --lost` restores what is lost, and refuses whatever else an update would do."""

from typing import Any

import pytest

from tfdeploy.cli.restore_plan import RestorePlan, restore_plan

TASK, RUN = "pulumi-python:dynamic/tfdeploy:Task", "pulumi-python:dynamic/tfdeploy:Run"
CLEANUP, SWARM = "pulumi-python:dynamic/tfdeploy:Cleanup", "pulumi-python:dynamic/tfdeploy:Swarm"
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
    assert restore_plan(steps) == RestorePlan((), ())


def test_what_stood_before_and_is_made_as_it_was_comes_back() -> None:
    task, run = state(TASK, hostname="worker-0", token="[secret]"), state(RUN, run={"id": "a", "command": ["x"]})
    made = state(TASK, hostname="worker-0", token=UNKNOWN)
    assert restore_plan([*died("t-worker-0", task, made), *died("t-run", run, run)]) == RestorePlan(
        ("t-worker-0", "t-run"), ()
    )


@pytest.mark.parametrize(
    ("steps", "edit"),
    [
        ([step("create", "t-worker-1", None, state(TASK))], "t-worker-1 would be created for the first time"),
        ([step("delete", "t-worker-1", state(TASK))], "t-worker-1 would be deleted"),
        (
            died("t-run", state(RUN, run={"command": ["a"]}), state(RUN, run={"command": ["a", "b"]})),
            "t-run would change: run.command",
        ),
        (
            [step("update", "t-cleanup", state(CLEANUP, hostnames=["a"]), state(CLEANUP, hostnames=["a", "b"]))],
            "t-cleanup would change: hostnames",
        ),
        (
            died("t-worker-0", state(TASK, memory=1, gpus=""), state(TASK, memory=2, gpus="0")),
            "t-worker-0 would change: gpus, memory",
        ),
    ],
)
def test_whatever_else_an_update_would_do_is_an_edit(steps: list[Step], edit: str) -> None:
    assert restore_plan(steps) == RestorePlan((), (edit,))


def test_the_tasks_of_a_lost_machine_are_restored_on_others() -> None:
    old, new = (
        state(TASK, hostname="worker-0", machine=name, memory=1, gpus=gpus) for name, gpus in (("m1", "0"), ("m2", "1"))
    )
    moved = [step("update", "t-worker-0", old, new)]
    assert restore_plan(moved).edits == ("t-worker-0 would change: gpus, machine",)
    assert restore_plan(moved, "m1") == RestorePlan(("t-worker-0",), ())
    assert restore_plan(moved, "m2").edits
    larger = state(TASK, hostname="worker-0", machine="m2", memory=2, gpus="1")
    assert restore_plan([step("update", "t-worker-0", old, larger)], "m1").edits == ("t-worker-0 would change: memory",)


SECRETIVE = state(RUN, run={"id": "a"}, secrets="[secret]", token="[secret]")


def test_a_secret_that_was_edited_is_an_edit() -> None:
    changed = step("update", "t-run", SECRETIVE, SECRETIVE)
    assert restore_plan([changed]) == RestorePlan((), ("t-run would change: secrets",))
    assert restore_plan([{**changed, "detailedDiff": {"secrets.A": {}}}]).edits == ("t-run would change: secrets",)
    assert restore_plan([{**changed, "diffReasons": ["tags"]}]) == RestorePlan(("t-run",), ())
    assert restore_plan(died("t-run", SECRETIVE, SECRETIVE)) == RestorePlan(("t-run",), ())


def machine(life: str, kind: str = "m7i.large", **others: Any) -> Step:
    return state(INSTANCE, instanceType=kind, userData=life, tags={"Name": "a"}, **others)


def members(life: str, label: str = "a") -> Step:
    one = {"machine": "w0", "instance_id": life, "labels": {"zone": label}, "kind": {"image_id": life}}
    return state(SWARM, members=[one], lifetime=60)


def test_a_machine_that_died_is_made_again_and_what_hangs_on_it_follows() -> None:
    steps = [
        step("create-replacement", "w0", machine("1"), machine("2", ami=UNKNOWN)),
        step("replace", "w0", machine("1"), machine("2")),
        step("delete-replaced", "w0", machine("1")),
        step("update", "t-swarm", members("1"), members("2")),
        step(
            "update",
            "t-worker-0",
            state(TASK, dependencies={"network": "n1"}),
            state(TASK, dependencies={"network": "n2"}),
        ),
    ]
    assert restore_plan(steps) == RestorePlan(("w0", "t-swarm", "t-worker-0"), ())


def test_a_machine_of_another_kind_or_elsewhere_is_an_edit() -> None:
    assert restore_plan([step("replace", "w0", machine("1"), machine("2", "m7i.xlarge"))]).edits == (
        "w0 would change: instanceType",
    )
    assert restore_plan([step("update", "t-swarm", members("1"), members("2", "b"))]).edits == (
        "t-swarm would change: members.labels.zone",
    )


def test_an_image_of_another_swarm_is_restored() -> None:
    kind = "pulumi-python:dynamic/tfdeploy:Image"
    before, after = (state(kind, name="mnist:1", swarm=swarm) for swarm in ("one", "other"))
    assert restore_plan([step("create-replacement", "m-image", before, after)]) == RestorePlan(("m-image",), ())
    edited = state(kind, name="mnist:2", swarm="other")
    assert restore_plan([step("create-replacement", "m-image", before, edited)]).edits == (
        "m-image would change: name",
    )
