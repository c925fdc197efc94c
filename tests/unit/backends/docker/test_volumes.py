"""Both of Docker's forms of a mount, and what is neither; which volumes only one task uses, and what a restart does to them."""

from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.clusters import cluster_ref
from tfdeploy.backends.container_layout import refuse_targets
from tfdeploy.backends.docker.labels import MACHINE_LABEL, TRAIN_VOLUME, volume_name
from tfdeploy.backends.docker.volumes import exclusive_volumes, parse_mount, restart_effects
from tfdeploy.errors import SpecError

LABELS = {"tfdeploy.cluster": "mnist"}


def bound(source: str, target: str, read_only: bool = False) -> dict[str, Any]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def named(source: str, target: str, read_only: bool = False, **options: Any) -> dict[str, Any]:
    return {**bound(source, target, read_only), "Type": "volume", "VolumeOptions": {"Labels": LABELS, **options}}


def driver(name: str, **options: str) -> dict[str, Any]:
    return {"Name": name, "Options": options}


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("/data:/data", bound("/data", "/data")),
        ("/data:/mnt/data:ro", bound("/data", "/mnt/data", True)),
        ("/a,b=c:/d", bound("/a,b=c", "/d")),
        ("cache:/cache", named("cache", "/cache")),
        ("My_cache-1.0:/cache:ro", named("My_cache-1.0", "/cache", True)),
        ("type=bind,source=/a,target=/b", bound("/a", "/b")),
        ("type=bind,src=/a,dst=/b,ro", bound("/a", "/b", True)),
        ("type=bind,source=/a,target=/b,readonly=false", bound("/a", "/b")),
        ("source=cache,target=/cache", named("cache", "/cache")),
        (
            "source=cache,target=/c,volume-driver=nfs,volume-opt=share=host:/a=b",
            named("cache", "/c", DriverConfig=driver("nfs", share="host:/a=b")),
        ),
        (
            'source=cache,target=/c,volume-opt=type=nfs,"volume-opt=o=addr=10.0.0.1,rw"',
            named("cache", "/c", DriverConfig=driver("local", type="nfs", o="addr=10.0.0.1,rw")),
        ),
        ("source=cache,target=/c,volume-label=a=b", named("cache", "/c", Labels={**LABELS, "a": "b"})),
        ("source=cache,target=/c,volume-nocopy", named("cache", "/c", NoCopy=True)),
        (
            "type=tmpfs,target=/scratch,size=1GiB",
            {"Type": "tmpfs", "Target": "/scratch", "TmpfsOptions": {"SizeBytes": 1024**3}},
        ),
    ],
)
def test_a_mount_is_parsed(text: str, mount: dict[str, Any]) -> None:
    labels = dict(LABELS)
    assert parse_mount("mnist: volumes", text, labels) == mount
    assert labels == LABELS


PARTS = st.sampled_from([*'type= bind tmpfs source= /a aa , : = " target= /b ro size= 1G ä'.split(), "\n"])  # noqa: SIM905


@given(st.one_of(st.text(), st.lists(PARTS).map("".join)))
@example("target=/a\nb")
@example('target="')
@example("target=" + "a" * 200_000)
def test_whatever_the_text_it_becomes_a_mount_or_is_refused(text: str) -> None:
    try:
        mount = parse_mount("mnist: volumes", text, LABELS)
    except SpecError:
        return
    assert mount["Target"].startswith("/")
    assert mount["Type"] in ("bind", "volume", "tmpfs")
    assert mount["Type"] == "tmpfs" or mount["Source"]


@pytest.mark.parametrize(
    ("targets", "duplicate"),
    [([], ""), (["/a", "/b"], ""), (["/a", "/b", "/a"], "/a"), (["/a/", "/a"], "/a"), (["/a/b", "/a"], "")],
)
def test_two_mounts_may_not_share_a_target(targets: list[str], duplicate: str) -> None:
    with pytest.raises(SpecError, match=f"^m: {duplicate} is the target of two mounts") if duplicate else nullcontext():
        refuse_targets("m", targets)


CLUSTER = cluster_ref(home="unix:///nowhere")
TRAIN = volume_name(CLUSTER, TRAIN_VOLUME)


def mounted(source: str, **more: Any) -> dict[str, Any]:
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
        ([mounted("a")], {}, ["a"]),
        ([mounted("a"), mounted("b")], {"worker-1": service("m0", mounted("b"))}, ["a"]),
        ([mounted("a")], {"worker-1": service("m1", mounted("a"))}, ["a"]),
        ([mounted("a", **NFS)], {"worker-1": service("m1", mounted("a", **NFS))}, []),
        ([mounted("a", **CLOUD)], {"worker-1": service("m1", mounted("a", **CLOUD))}, []),
        ([mounted("a")], {"controller": service("", mounted("a"))}, []),
        ([mounted("a", ReadOnly=True)], {}, []),
        ([mounted(TRAIN)], {}, []),
        ([{"Type": "bind", "Source": "/a", "Target": "/a"}, {"Type": "tmpfs", "Target": "/b"}], {}, []),
    ],
    ids="alone shared elsewhere nfs driver controller read-only train others".split(),  # noqa: SIM905
)
def test_exclusive_volumes_are_those_that_no_other_task_mounts(
    mounts: list[Any], others: dict[str, Any], exclusive: list[str]
) -> None:
    services = {"worker-0": service("m0", *mounts), **others}
    assert exclusive_volumes(CLUSTER, services, "worker-0") == exclusive


def test_the_effects_of_a_restart_are_printed() -> None:
    services = {"ps-0": service("m0", mounted("a"), mounted("b"), mounted(TRAIN)), "ps-1": service("m0", mounted("b"))}
    begin = "ps-0 gets a new container on m0; the other tasks continue. Files that it wrote into its old container are lost."
    end = "Files in train_dir (/t) will be retained."
    restart, replace = (
        " ".join(restart_effects(CLUSTER, services, "ps-0", "/t", replace=replace)) for replace in (False, True)
    )
    removed = (
        "Volume a on m0, used only by this task, will be removed with all data, unless created before the cluster."
    )
    assert restart == f"{begin} Volumes a, b will be retained. {end}"
    assert replace == f"{begin} {removed} Volume b will be retained. {end}"
    none = "No volume is used only by this task, so none is removed. Volume b will be retained."
    assert none in " ".join(restart_effects(CLUSTER, services, "ps-1", "/t", replace=True))
