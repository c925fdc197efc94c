"""What is refused before anything is created, and what a preview says that `destroy` keeps and removes."""

from typing import Any

import pytest

from tests.clusters import ID
from tests.unit.backends.ec2.fleets import facts, instance, spec
from tests.unit.cases import inventory
from tfdeploy.backends.ec2 import validate
from tfdeploy.backends.ec2.machine import machines
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
