"""What is asked of containers: the cluster's, a job's own, and what is refused."""

from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.containers import ContainerSpec, EngineSpec
from tfdeploy.errors import SpecError

DIGEST = f"@sha256:{'0123456789abcdef' * 4}"


def jobs(**args: Any) -> dict[str, ContainerSpec]:
    """Job to its containers, of one ps and one worker."""
    return {job.name: job.container for job in spec(ps=1, workers=1, **args).jobs}


def test_nothing_asked_is_the_default() -> None:
    assert jobs() == {"ps": ContainerSpec(), "worker": ContainerSpec()}
    assert spec(workers=1).engine == EngineSpec()
    assert EngineSpec() == EngineSpec("", "overlay", "", "", "", False)


def test_what_is_the_clusters_is_every_jobs() -> None:
    given = {"user": "1000:1000", "volumes": ["/a:/a"], "shm_size": "1GiB", "placement": ["hostname:UNIQUE"]}
    both = ContainerSpec("", "1000:1000", ("/a:/a",), 1024**3, ("hostname:UNIQUE",))
    assert jobs(**given) == {"ps": both, "worker": both}


def test_a_jobs_own_stands_over_the_clusters_and_volumes_are_added() -> None:
    found = jobs(
        image="mine:1",
        user="root",
        volumes=["/a:/a"],
        shm_size="1GiB",
        placement=["hostname:UNIQUE"],
        jobs={
            "worker": {
                "image": "mine:gpu",
                "user": "me",
                "volumes": ["/b:/b"],
                "shm_size": 5,
                "placement": ["rack:CLUSTER", "zone:IS:a"],
            }
        },
    )
    assert found["ps"] == ContainerSpec("", "root", ("/a:/a",), 1024**3, ("hostname:UNIQUE",))
    assert found["worker"] == ContainerSpec("mine:gpu", "me", ("/a:/a", "/b:/b"), 5, ("rack:CLUSTER", "zone:IS:a"))
    assert spec(workers=1, image="mine:1").image == "mine:1"


def test_a_job_without_a_constraint_is_taken_at_its_word() -> None:
    assert jobs(placement=["hostname:UNIQUE"], jobs={"ps": {"placement": []}}) == {
        "ps": ContainerSpec(),
        "worker": ContainerSpec(placement=("hostname:UNIQUE",)),
    }


def test_the_engine_is_as_asked() -> None:
    asked = spec(
        workers=1,
        docker_host="ssh://me@manager",
        build="image",
        registry="registry.example.com/team/",
        subnet="10.20.0.0/24",
        keep_volumes=True,
    )
    assert asked.engine == EngineSpec(
        "ssh://me@manager", "overlay", "10.20.0.0/24", "image", "registry.example.com/team", True
    )
    assert spec(workers=1, network="host").engine.network == "host"


@pytest.mark.parametrize(
    "image", ["python", "a/b:1.0-rc_1", "registry.example.com:5000/a/b:c", f"a/b{DIGEST}", f"a/b:c{DIGEST}"]
)
def test_an_image_may_be_named_in_every_usual_way(image: str) -> None:
    assert spec(workers=1, image=image).image == image
    assert jobs(jobs={"ps": {"image": image}})["ps"].image == image


@pytest.mark.parametrize(
    "host",
    ["unix:///var/run/docker.sock", "tcp://10.0.0.1:2376", "ssh://me@manager:22", "https://manager:2376"],
)
def test_an_engine_may_be_reached_in_every_usual_way(host: str) -> None:
    assert spec(workers=1, docker_host=host).engine.docker_host == host


SUBNET = 'It takes a pool of addresses, such as "10.20.0.0/24".'
HOST = 'It takes an address, such as "ssh://me@manager".'
IMAGE = 'It takes an image, such as "tensorflow/tensorflow:2.20.0".'
USER = 'It takes a user of the image, such as "1000:1000" or "root".'


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"image": "a b"}, f"mnist: image: is 'a b'. {IMAGE}"),
        ({"image": "-a"}, f"mnist: image: is '-a'. {IMAGE}"),
        ({"image": "a@sha256:12"}, f"mnist: image: is 'a@sha256:12'. {IMAGE}"),
        ({"jobs": {"worker": {"image": ":1"}}}, f"mnist: jobs: worker: image: is ':1'. {IMAGE}"),
        ({"user": "a b"}, f"mnist: user: is 'a b'. {USER}"),
        ({"user": "1:2:3"}, f"mnist: user: is '1:2:3'. {USER}"),
        ({"user": 1000}, "mnist: user: is 1000, of type int. It takes a text."),
        ({"volumes": "/a:/b"}, "mnist: volumes: is '/a:/b', of type str. It takes a list of texts."),
        ({"shm_size": "much"}, 'mnist: shm_size: \'much\' is no size. It takes a size such as "512MiB", "2GiB"'),
        ({"shm_size": -1}, "mnist: shm_size: -1 is no size."),
        ({"network": "bridge"}, "mnist: network: is 'bridge'. It takes one of: overlay, host."),
        ({"subnet": "10.20.0.0"}, f"mnist: subnet: is '10.20.0.0'. {SUBNET}"),
        ({"subnet": "10.20.0.0/33"}, f"mnist: subnet: is '10.20.0.0/33'. {SUBNET}"),
        ({"subnet": "10.20.0.256/32"}, f"mnist: subnet: is '10.20.0.256/32'. {SUBNET}"),
        ({"subnet": "10.20.0.1/24"}, f"mnist: subnet: is '10.20.0.1/24'. {SUBNET}"),
        ({"subnet": "10.20.0.0/24", "network": "host"}, "mnist: subnet: is given with the host network."),
        ({"build": "a", "image": "b"}, "mnist: build: is given together with image."),
        ({"docker_host": "manager"}, f"mnist: docker_host: is 'manager'. {HOST}"),
        ({"docker_host": "tcp://"}, f"mnist: docker_host: is 'tcp://'. {HOST}"),
        ({"keep_volumes": "yes"}, "mnist: keep_volumes: is 'yes', of type str. It takes True or False."),
    ],
    ids=str,
)
def test_what_cannot_be_wanted_is_refused(args: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as refusal:
        spec(workers=1, **args)
    assert str(refusal.value).startswith(said)
