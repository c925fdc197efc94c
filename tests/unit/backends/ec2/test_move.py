"""When an update brings a run to this computer before it replaces machines, what it says, and what it refuses."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit import cases
from tests.unit.backends.ec2.fleets import GPUS, PAIR, PS, WORKER, facts, spec
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
from tfdeploy.backends.base import Replacement
from tfdeploy.backends.ec2 import planner
from tfdeploy.backends.ec2.machine import machines
from tfdeploy.backends.ec2.machine.model import MachineState
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import make_plan

SHARED = (replace(PS, files="fs-1"), replace(WORKER, files="fs-1"))
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
    inventory = cases.inventory(wanted, *known, train_dir="/tfdeploy/train", data_dir="")
    run = RunState(replace(make_plan(wanted, inventory).run, train_dir=train_dir, artifacts=[*artifacts]), 1.0)
    causes = {STOPPED: STOP_REQUESTED, FAILED: TASK_FAILED}
    run.result = RunResult(result, cause or causes.get(result, ""), 2.0) if result else None
    inventory = replace(inventory, run=run)
    plan = make_plan(wanted, inventory)
    replacement = planner.replacement_of(wanted, plan, inventory)
    return replacement, planner.replacement_lines(plan, inventory, replacement)


def test_another_type_brings_the_run_here_first() -> None:
    replacement, (line,) = asked(**OTHER_WORKER)
    assert replacement == Replacement(("i-mnist-worker-m0",))
    assert line.startswith("the run is stopped, its record and newest checkpoint are copied to this computer before")
    assert line.endswith("to return, undo the change and run `pulumi up`")
    assert asked(**OTHER)[0] == Replacement(("i-mnist-ps-m0", "i-mnist-worker-m0"))


def test_what_loses_nothing_is_left_alone() -> None:
    assert asked() == (None, [])
    efs: dict[str, Any] = {"ec2": {"efs": "fs-1"}, **OTHER_WORKER}
    assert asked(*SHARED, train_dir="/mnt/tfdeploy/mnist/run", **efs) == (None, [])
    assert asked(train_dir="s3://bucket/run", **OTHER_WORKER) == (None, [])
    gone = asked(WORKER, **OTHER)
    assert gone == (None, []), "no controller could send the record"


def test_the_record_of_a_manager_is_brought_although_the_checkpoints_stay() -> None:
    efs = {"instance_type": GPUS.name, "efs": "fs-1"}
    replacement, (line,) = asked(*SHARED, train_dir="/mnt/tfdeploy/mnist/run", artifacts=(), ec2=efs)
    assert replacement is not None
    assert replacement.keeps_train_dir
    assert line.startswith("the run is stopped, its record is copied")
    own = {"instance_type": GPUS.name, "ebs_volumes": ["vol-0123456789abcdef0:/data"]}
    on_volume = replace(WORKER, is_manager=True, disks="vol-0123456789abcdef0")
    kept, _ = asked(on_volume, train_dir="/mnt/volumes/sdf/run", artifacts=(), ps=0, ec2=own)
    assert kept is not None
    assert kept.keeps_train_dir
    another, _ = asked(*SHARED, train_dir="/mnt/tfdeploy/mnist/run", ec2={**efs, "efs": "fs-2"})
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
