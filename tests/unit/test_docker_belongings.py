"""What of a task's volumes is its own."""

from typing import Any

import pytest

from tfdeploy.backends.base import Cluster
from tfdeploy.backends.docker import belongings, names

CLUSTER: Cluster = {"backend": "docker", "project": "p", "stack": "dev", "name": "mnist", "home": "unix:///nowhere"}
TRAIN = names.volume(CLUSTER, names.TRAIN)


def mount(source: str, **more: Any) -> dict[str, Any]:
    """A volume, mounted somewhere."""
    return {"Type": "volume", "Source": source, "Target": f"/{source}", **more}


def service(machine: str, *mounts: dict[str, Any]) -> dict[str, Any]:
    """A service on a machine; the keeper's says none."""
    labels = {names.MACHINE: machine} if machine else {}
    return {"Spec": {"Labels": labels, "TaskTemplate": {"ContainerSpec": {"Mounts": list(mounts)}}}}


NFS = {"VolumeOptions": {"DriverConfig": {"Name": "local", "Options": {"type": "nfs"}}}}
CLOUD = {"VolumeOptions": {"DriverConfig": {"Name": "cloud", "Options": {}}}}


@pytest.mark.parametrize(
    ("mine", "others", "own"),
    [
        ([mount("a")], {}, ["a"]),
        ([mount("a"), mount("b")], {"worker-1": service("m0", mount("b"))}, ["a"]),
        ([mount("a")], {"worker-1": service("m1", mount("a"))}, ["a"]),
        ([mount("a", **NFS)], {"worker-1": service("m1", mount("a", **NFS))}, []),
        ([mount("a", **CLOUD)], {"worker-1": service("m1", mount("a", **CLOUD))}, []),
        ([mount("a")], {"keeper": service("", mount("a"))}, []),
        ([mount("a", ReadOnly=True)], {}, []),
        ([mount(TRAIN)], {}, []),
        ([{"Type": "bind", "Source": "/a", "Target": "/a"}, {"Type": "tmpfs", "Target": "/b"}], {}, []),
    ],
    ids="alone shared elsewhere nfs driver keeper read-only train others".split(),  # noqa: SIM905
)
def test_own_is_what_no_other_task_has(mine: list[Any], others: dict[str, Any], own: list[str]) -> None:
    services = {"worker-0": service("m0", *mine), **others}
    assert belongings.own(CLUSTER, services, "worker-0") == own


def test_what_is_lost_is_said() -> None:
    services = {"ps-0": service("m0", mount("a"), mount("b"), mount(TRAIN)), "ps-1": service("m0", mount("b"))}
    begins = "ps-0 gets a new container on m0; the other tasks go on. What it has written into its container is lost."
    ends = "What is in train_dir (/t) stays."
    restart, replace = (" ".join(belongings.sentences(CLUSTER, services, "ps-0", "/t", anew)) for anew in (False, True))
    lost = "Its own volume a on m0 is removed with its content, unless it was there before the cluster."
    assert restart == f"{begins} The volumes a, b stay. {ends}"
    assert replace == f"{begins} {lost} The volume b stays. {ends}"
    nothing = "It has no volume of its own that could be lost. The volume b stays."
    assert nothing in " ".join(belongings.sentences(CLUSTER, services, "ps-1", "/t", True))
