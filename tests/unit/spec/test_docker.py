"""What is asked of containers: the cluster's, a job's own, and what is refused."""

from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.spec.cluster import ClusterSpec
from tfdeploy.spec.docker import ContainerSpec, JobContainerSpec

DIGEST = f"@sha256:{'0123456789abcdef' * 4}"


def docker_spec(**args: Any) -> ClusterSpec:
    return spec(workers=1, backend="docker", **args)


def jobs(**args: Any) -> dict[str, JobContainerSpec]:
    return {job.name: job.container for job in docker_spec(ps=1, **args).jobs}


def test_a_jobs_settings_override_the_clusters_and_volumes_are_added() -> None:
    container = {
        "image": "mine:1",
        "user": "root",
        "volumes": ["/a:/a"],
        "shm_size": "1GiB",
        "placement": ["hostname:UNIQUE"],
    }
    own = {
        "image": "mine:gpu",
        "user": "me",
        "volumes": ["/b:/b"],
        "shm_size": 5,
        "placement": ["rack:CLUSTER", "zone:IS:a"],
    }
    made = jobs(container=container, jobs={"worker": {"container": own}})
    assert made["ps"] == JobContainerSpec("mine:1", "root", ("/a:/a",), 1024**3, ("hostname:UNIQUE",))
    assert made["worker"] == JobContainerSpec("mine:gpu", "me", ("/a:/a", "/b:/b"), 5, ("rack:CLUSTER", "zone:IS:a"))
    assert docker_spec(container={"image": "mine:1"}).container.image == "mine:1"


def test_an_empty_placement_of_a_job_replaces_the_clusters() -> None:
    assert jobs(container={"placement": ["hostname:UNIQUE"]}, jobs={"ps": {"container": {"placement": []}}}) == {
        "ps": JobContainerSpec(),
        "worker": JobContainerSpec(placement=("hostname:UNIQUE",)),
    }


def test_the_group_container() -> None:
    container = {
        "build": "image",
        "registry": "registry.example.com/team/",
        "subnet": "10.20.0.0/24",
        "retain_volumes": False,
    }
    assert docker_spec(container=container).container == ContainerSpec(
        build="image", registry="registry.example.com/team", subnet="10.20.0.0/24", retain_volumes=False
    )
    assert docker_spec(container={"network": "host"}).container.network == "host"


_OF_WORKER = ("jobs.worker.container", "jobs.worker.ec2", "jobs.worker.kubernetes")


@pytest.mark.parametrize(
    ("backend", "used", "unused"),
    [
        ("local", set(), ("container", "docker", "ec2", "kubernetes", *_OF_WORKER)),
        ("docker", {"container", "docker"}, ("ec2", "kubernetes", *_OF_WORKER[1:])),
        ("ec2", {"container", "ec2"}, ("docker", "kubernetes", "jobs.worker.kubernetes")),
    ],
)
def test_a_group_is_used_only_on_its_backends(backend: str, used: set[str], unused: tuple[str, ...]) -> None:
    made = spec(
        workers=1,
        backend=backend,
        container={"image": "mine:1"},
        docker={"host": "ssh://me@manager"},
        ec2={"region": "us-west-2"},
        kubernetes={"namespace": "training"},
        jobs={
            "worker": {
                "container": {"user": "me"},
                "ec2": {"instance_type": "m7i.large"},
                "kubernetes": {"priority_class": "low"},
            }
        },
    )
    assert made.unused_groups == unused
    assert bool(made.container.image) == bool(made.jobs[0].container.user) == ("container" in used)
    assert bool(made.docker.host) == ("docker" in used)
    assert bool(made.ec2.region) == bool(made.jobs[0].ec2.instance_type) == ("ec2" in used)
    assert bool(made.kubernetes.namespace) == bool(made.jobs[0].kubernetes.priority_class) == ("kubernetes" in used)


@pytest.mark.parametrize(
    "image", ["python", "a/b:1.0-rc_1", "registry.example.com:5000/a/b:c", f"a/b{DIGEST}", f"a/b:c{DIGEST}"]
)
def test_an_image_may_be_named_in_every_usual_way(image: str) -> None:
    assert docker_spec(container={"image": image}).container.image == image
    assert jobs(jobs={"ps": {"container": {"image": image}}})["ps"].image == image


@pytest.mark.parametrize(
    "host",
    ["unix:///var/run/docker.sock", "tcp://10.0.0.1:2376", "ssh://me@manager:22", "https://manager:2376"],
)
def test_an_engine_may_be_reached_in_every_usual_way(host: str) -> None:
    assert docker_spec(docker={"host": host}).docker.host == host


REFUSALS: list[dict[str, Any]] = [
    {"container": {"image": "a b"}},
    {"container": {"image": "a@sha256:12"}},
    {"jobs": {"worker": {"container": {"image": ":1"}}}},
    {"container": {"user": "a b"}},
    {"container": {"user": 1000}},
    {"container": {"volumes": "/a:/b"}},
    {"container": {"shm_size": "much"}},
    {"container": {"shm_size": -1}},
    {"container": {"lease": "2m"}},
    {"container": {"network": "bridge"}},
    {"container": {"subnet": "10.20.0.0"}},
    {"container": {"subnet": "10.20.0.0/33"}},
    {"container": {"subnet": "10.20.0.1/24"}},
    {"container": {"subnet": "10.20.0.0/24", "network": "host"}},
    {"container": {"build": "a", "image": "b"}},
    {"docker": {"host": "manager"}},
    {"docker": {"host": "tcp://"}},
    {"container": {"retain_volumes": "yes"}},
]
"""Arguments whose refusals are in snapshots/errors.txt."""
