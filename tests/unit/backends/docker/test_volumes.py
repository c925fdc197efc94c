"""Which volumes only one task uses, and what a restart does to them."""

from typing import Any

import pytest

from tests.clusters import cluster_ref
from tfdeploy.backends.docker import volumes
from tfdeploy.backends.docker.labels import MACHINE_LABEL, TRAIN_VOLUME, volume_name

CLUSTER = cluster_ref(home="unix:///nowhere")
TRAIN = volume_name(CLUSTER, TRAIN_VOLUME)


def mount(source: str, **more: Any) -> dict[str, Any]:
    """A mounted volume."""
    return {"Type": "volume", "Source": source, "Target": f"/{source}", **more}


def service(machine: str, *mounts: dict[str, Any]) -> dict[str, Any]:
    """A service on a machine; the controller's has no machine label."""
    labels = {MACHINE_LABEL: machine} if machine else {}
    return {"Spec": {"Labels": labels, "TaskTemplate": {"ContainerSpec": {"Mounts": list(mounts)}}}}


NFS = {"VolumeOptions": {"DriverConfig": {"Name": "local", "Options": {"type": "nfs"}}}}
CLOUD = {"VolumeOptions": {"DriverConfig": {"Name": "cloud", "Options": {}}}}


@pytest.mark.parametrize(
    ("mounts", "others", "exclusive"),
    [
        ([mount("a")], {}, ["a"]),
        ([mount("a"), mount("b")], {"worker-1": service("m0", mount("b"))}, ["a"]),
        ([mount("a")], {"worker-1": service("m1", mount("a"))}, ["a"]),
        ([mount("a", **NFS)], {"worker-1": service("m1", mount("a", **NFS))}, []),
        ([mount("a", **CLOUD)], {"worker-1": service("m1", mount("a", **CLOUD))}, []),
        ([mount("a")], {"controller": service("", mount("a"))}, []),
        ([mount("a", ReadOnly=True)], {}, []),
        ([mount(TRAIN)], {}, []),
        ([{"Type": "bind", "Source": "/a", "Target": "/a"}, {"Type": "tmpfs", "Target": "/b"}], {}, []),
    ],
    ids="alone shared elsewhere nfs driver controller read-only train others".split(),  # noqa: SIM905
)
def test_exclusive_volumes_are_those_that_no_other_task_mounts(
    mounts: list[Any], others: dict[str, Any], exclusive: list[str]
) -> None:
    services = {"worker-0": service("m0", *mounts), **others}
    assert volumes.exclusive_volumes(CLUSTER, services, "worker-0") == exclusive


def test_the_effects_of_a_restart_are_printed() -> None:
    services = {"ps-0": service("m0", mount("a"), mount("b"), mount(TRAIN)), "ps-1": service("m0", mount("b"))}
    begin = "ps-0 gets a new container on m0; the other tasks continue. Files that it wrote into its old container are lost."
    end = "Files in train_dir (/t) will be retained."
    restart, replace = (
        " ".join(volumes.restart_effects(CLUSTER, services, "ps-0", "/t", replace=replace)) for replace in (False, True)
    )
    removed = (
        "Volume a on m0, used only by this task, will be removed with all data, unless created before the cluster."
    )
    assert restart == f"{begin} Volumes a, b will be retained. {end}"
    assert replace == f"{begin} {removed} Volume b will be retained. {end}"
    none = "No volume is used only by this task, so none is removed. Volume b will be retained."
    assert none in " ".join(volumes.restart_effects(CLUSTER, services, "ps-1", "/t", replace=True))
