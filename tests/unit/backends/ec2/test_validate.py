"""What is refused before anything is created."""

import pytest

from tests.clusters import ID
from tests.unit.backends.ec2.fleets import facts, instance, spec
from tfdeploy.backends.ec2 import validate
from tfdeploy.errors import SpecError


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
