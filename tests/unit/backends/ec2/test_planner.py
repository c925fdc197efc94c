"""What is refused before anything is created; what a preview says that `destroy` keeps and removes; when an update brings a run to
this computer before it replaces machines, and what it says then."""

from dataclasses import replace
from typing import Any

import pytest

from tests.clusters import ID
from tests.unit.backends.ec2.fleets import GPUS, PAIR, PS, WORKER, facts, instance, spec
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
from tfdeploy.backends.base import Replacement
from tfdeploy.backends.ec2 import planner, validate
from tfdeploy.backends.ec2.machine import machines
from tfdeploy.backends.ec2.machine.model import MachineState
from tfdeploy.backends.ec2.planner import _retained_data
from tfdeploy.errors import SpecError
from tfdeploy.plan import retained_data as texts
from tfdeploy.plan.plan import make_plan


def test_machines_that_the_state_does_not_have_are_not_adopted() -> None:
    there = facts(instance("mnist-worker-m1"), instance("mnist-worker-m0"))
    validate.refuse_inventory(spec(workers=2), there, [])
    validate.refuse_inventory(spec(workers=2, adopt=ID), facts(), [])
    with pytest.raises(SpecError) as error:
        validate.refuse_inventory(spec(workers=2, adopt=ID), there, [])
    text = str(error.value)
    names = "mnist-worker-m0 (i-mnist-worker-m0), mnist-worker-m1 (i-mnist-worker-m1)"
    assert f"mnist: adopt: the cluster {ID} has {names}, which the state of this stack does not have." in text
    assert "`pulumi stack import`" in text
    assert f"`tfdeploy ls --leftovers --delete --cluster {ID}`" in text


def test_file_systems_that_the_state_does_not_have_are_not_adopted() -> None:
    """One that the user names as `efs` would still have the cluster's tag, by which `destroy` deletes file systems."""
    for efs in (None, "fs-0"):
        validate.refuse_file_systems(spec(workers=2, adopt=ID, ec2={"efs": efs}), ["fs-1", "fs-2"])
    validate.refuse_file_systems(spec(workers=2, adopt=ID, ec2={"efs": "new"}), [])
    validate.refuse_file_systems(spec(workers=2, ec2={"efs": "new"}), ["fs-1"])
    for efs, names in (("new", "fs-1, fs-2"), ("fs-2", "fs-2")):
        with pytest.raises(SpecError) as error:
            validate.refuse_file_systems(spec(workers=2, adopt=ID, ec2={"efs": efs}), ["fs-2", "fs-1"])
        text, first = str(error.value), names[:4]
        assert f"mnist: adopt: the cluster {ID} has the file system {names}, which the state of this" in text
        assert f"`aws efs untag-resource --resource-id {first} --tag-keys tfdeploy:" in text
        assert f'ec2={{"efs": "{first}"}}' in text
        assert f"`tfdeploy ls --leftovers --delete --cluster {ID}` deletes it with the checkpoints." in text


SHARED, LOCAL = "/mnt/tfdeploy/mnist", "/tfdeploy/train"


def told(train_dir: str, file_systems: dict[str, int] | None = None, **args: Any) -> list[str]:
    """The lines but those about the record."""
    asked = spec(workers=1, **args)
    planned = machines.plan_machines(asked, facts())
    plan = make_plan(asked, inventory(asked, *planned, train_dir=train_dir))
    found = _retained_data(asked, plan, ("s3://records/mnist-id", "/home/ada/retained"), file_systems or {})
    lines = list(texts.lines(found))
    assert lines[:3] == ["`pulumi destroy` keeps:", "  record: /home/ada/retained", "  record: s3://records/mnist-id"]
    return [line.strip() for line in lines[3:]]


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
    assert told(train_dir, **args) == lines


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
