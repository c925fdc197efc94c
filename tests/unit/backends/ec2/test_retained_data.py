"""What a preview says that `destroy` keeps and removes: the record, the checkpoints, and the disks."""

from typing import Any

import pytest

from tests.unit.backends.ec2.fleets import facts, spec
from tests.unit.cases import inventory
from tfdeploy.backends.ec2.machine import machines
from tfdeploy.backends.ec2.planner import _retained_data
from tfdeploy.plan import retained_data as texts
from tfdeploy.plan.plan import make_plan

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


def test_the_clusters_own_file_systems_are_told_with_their_size() -> None:
    (line,) = told(SHARED, {"fs-0b": 3 << 30}, ec2={"efs": "new"})
    assert line.endswith(" on the file system fs-0b, 3 GiB")
