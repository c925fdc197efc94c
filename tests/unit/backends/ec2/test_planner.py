"""What `destroy` keeps and removes, as a preview says; when an update brings a run here before it replaces machines."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.backends.ec2.fleets import CLUSTER, GPUS, PAIR, PS, WORKER, facts, plan, spec
from tests.unit.cases import inventory
from tfdeploy.agent.model.run_state import (
    FAILED,
    MOVED,
    STOP_REQUESTED,
    STOPPED,
    SUCCEEDED,
    TASK_FAILED,
    RunResult,
    RunState,
)
from tfdeploy.backends.base import CONTROLLER, Replacement
from tfdeploy.backends.ec2 import planner
from tfdeploy.backends.ec2.machine import machines
from tfdeploy.backends.ec2.machine.model import MachineState
from tfdeploy.backends.ec2.planner import _containers, _retained_data
from tfdeploy.errors import SpecError
from tfdeploy.plan import retained_data as texts
from tfdeploy.plan.plan import make_plan

SHARED, LOCAL = "/mnt/tfdeploy/mnist", "/tfdeploy/train"


REMOVES = "`pulumi destroy` removes:"


@pytest.mark.parametrize(
    ("train_dir", "args", "lines"),
    [
        ("s3://bucket/runs", {}, ["checkpoints: s3://bucket/runs"]),
        (SHARED, {"ec2": {"efs": "fs-0a"}}, [f"checkpoints: {SHARED} on the file system fs-0a"]),
        (SHARED, {"ec2": {"efs": "new"}}, [f"checkpoints: {SHARED} on the new file system (EFS)"]),
        (
            SHARED,
            {"ec2": {"efs": "new"}, "container": {"retain_volumes": False}},
            [REMOVES, f"checkpoints: {SHARED} on the new file system (EFS)"],
        ),
        (LOCAL, {}, [REMOVES, f"checkpoints: {LOCAL} on mnist-worker-m0"]),
        (
            "/mnt/volumes/sdf/runs",
            {"ec2": {"ebs_volumes": ["vol-0123456789abcdef0:/data", "200GiB:/scratch"]}},
            [
                "checkpoints: /mnt/volumes/sdf/runs on mnist-worker-m0",
                "volume: vol-0123456789abcdef0 of mnist-worker-m0",
                REMOVES,
                "disk: /scratch of mnist-worker-m0, 200 GiB",
            ],
        ),
    ],
    ids=str,
)
def test_what_is_kept_and_removed(train_dir: str, args: dict[str, Any], lines: list[str]) -> None:
    asked = spec(workers=1, **args)
    planned = machines.plan_machines(asked, facts())
    plan = make_plan(asked, inventory(asked, *planned, train_dir=train_dir))
    found = texts.lines(_retained_data(asked, plan, ("s3://records/mnist-id", "/home/ada/retained"), {}))
    record = ["record: /home/ada/retained", "record: s3://records/mnist-id"]
    assert [line.strip() for line in found] == ["`pulumi destroy` keeps:", *record, *lines]


ON_EFS = (replace(PS, files="fs-1"), replace(WORKER, files="fs-1"))
OTHER_WORKER: dict[str, Any] = {"jobs": {"worker": {"ec2": {"instance_type": GPUS.name}}}}
OTHER: dict[str, Any] = {"ec2": {"instance_type": GPUS.name}}
FOLDER = "/tfdeploy/train/run"


def asked(
    *there: MachineState,
    train_dir: str = FOLDER,
    result: str = "",
    cause: str = "",
    artifacts: tuple[str, ...] = ("x",),
    **args: Any,
) -> tuple[Replacement | None, list[str]]:
    """What is replaced, and the sentences, for a run in this folder with this result."""
    wanted = spec(**{**PAIR, **args})
    known = machines.plan_machines(wanted, facts(*(there or (PS, WORKER))))
    there_is = inventory(wanted, *known, train_dir="/tfdeploy/train", data_dir="")
    run = RunState(replace(make_plan(wanted, there_is).run, train_dir=train_dir, artifacts=[*artifacts]), 1.0)
    causes = {STOPPED: STOP_REQUESTED, FAILED: TASK_FAILED}
    run.result = RunResult(result, cause or causes.get(result, ""), 2.0) if result else None
    there_is = replace(there_is, run=run)
    plan = make_plan(wanted, there_is)
    replacement = planner.replacement_of(wanted, plan, there_is)
    return replacement, planner.replacement_lines(plan, there_is, replacement)


def test_another_type_brings_the_run_here_first() -> None:
    replacement, (line,) = asked(**OTHER_WORKER)
    assert replacement == Replacement(("i-mnist-worker-m0",))
    assert line.startswith("the run is stopped, its record and newest checkpoint are copied to this computer before")
    assert line.endswith("to return, undo the change and run `pulumi up`")
    assert asked(**OTHER)[0] == Replacement(("i-mnist-ps-m0", "i-mnist-worker-m0"))


def test_what_loses_nothing_is_left_alone() -> None:
    assert asked() == (None, [])
    efs: dict[str, Any] = {"ec2": {"efs": "fs-1"}, **OTHER_WORKER}
    assert asked(*ON_EFS, train_dir="/mnt/tfdeploy/mnist/run", **efs) == (None, [])
    assert asked(train_dir="s3://bucket/run", **OTHER_WORKER) == (None, [])
    gone = asked(WORKER, **OTHER)
    assert gone == (None, []), "no controller could send the record"


def test_the_record_of_a_manager_is_brought_although_the_checkpoints_stay() -> None:
    efs = {"instance_type": GPUS.name, "efs": "fs-1"}
    replacement, (line,) = asked(*ON_EFS, train_dir="/mnt/tfdeploy/mnist/run", artifacts=(), ec2=efs)
    assert replacement is not None
    assert replacement.keeps_train_dir
    assert line.startswith("the run is stopped, its record is copied")
    own = {"instance_type": GPUS.name, "ebs_volumes": ["vol-0123456789abcdef0:/data"]}
    on_volume = replace(WORKER, is_manager=True, disks="vol-0123456789abcdef0")
    kept, _ = asked(on_volume, train_dir="/mnt/volumes/sdf/run", artifacts=(), ps=0, ec2=own)
    assert kept is not None
    assert kept.keeps_train_dir
    another, _ = asked(*ON_EFS, train_dir="/mnt/tfdeploy/mnist/run", ec2={**efs, "efs": "fs-2"})
    assert another is not None
    assert not another.keeps_train_dir


def test_what_could_not_continue_is_refused() -> None:
    with pytest.raises(SpecError, match="has failed, and a failed run does not continue on other machines"):
        asked(result=FAILED, **OTHER)
    with pytest.raises(
        SpecError, match="is empty, so that the checkpoints in /tfdeploy/train/run on machines that are"
    ):
        asked(artifacts=(), **OTHER)
    _, (line,) = asked(artifacts=(), result=SUCCEEDED, **OTHER)
    assert line.startswith("the run is finished: its record and newest checkpoint are copied")
    assert asked(result=STOPPED, **OTHER)[0] is not None


def test_a_run_that_an_earlier_update_has_stopped_continues() -> None:
    replacement, (line,) = asked(result=STOPPED, cause=MOVED)
    assert replacement == Replacement()
    assert line == "the run, which an earlier update has stopped, continues from its newest checkpoint"
    again, _ = asked(result=STOPPED, cause=MOVED, **OTHER)
    assert again is not None
    assert again.machines
    assert asked(result=STOPPED) == (None, []), "the user has stopped it"


@pytest.mark.parametrize(("network", "dropped"), [("overlay", ()), ("host", ("CAP_NET_RAW",))])
def test_tasks_see_what_their_machine_says_and_not_its_role(network: str, dropped: tuple[str, ...]) -> None:
    asked = spec(container={"network": network}, **PAIR)
    found = _containers(CLUSTER, asked, plan(container={"network": network}, **PAIR))
    seen = {"Type": "bind", "Source": "/run/tfdeploy", "Target": "/tfdeploy/machine", "ReadOnly": True}
    for hostname, container in found.items():
        assert (seen in container.mounts) == (hostname != CONTROLLER)
        assert container.dropped_capabilities == (() if hostname == CONTROLLER else dropped)
