"""What is refused of a cluster of containers, by what an engine has, and of what is only warned; what the tasks of others have
reserved; the addresses of the overlay network: enough of them for the plan, and never those of another network."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker.errors import APIError, ImageNotFound

from tests.unit.backends.docker.fake_engine import FakeApi
from tests.unit.cases import BOX, inventory, spec
from tests.unit.props import cluster
from tfdeploy.backends.container_layout import refuse_targets
from tfdeploy.backends.docker import containers, validate
from tfdeploy.backends.docker.addresses import refuse_few_addresses, refuse_overlap
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.labels import cluster_labels
from tfdeploy.backends.docker.swarm import nodes
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import Plan, make_plan
from tfdeploy.spec.cluster import ClusterSpec

IMAGES: dict[str, Any] = {
    "here": {"Config": {"Entrypoint": ["python"], "Cmd": ["a.py"]}},
    "bare": {"Config": {"Entrypoint": None, "Cmd": None}},
}


class Api:
    """Two nodes, of which one is drained, and two images."""

    def __init__(self, drained: str) -> None:
        self._drained = drained

    def nodes(self) -> list[dict[str, Any]]:
        states = {name: "drain" if name == self._drained else "active" for name in ("manager", "other")}
        return [
            {"ID": name, "Spec": {"Availability": state}, "Description": {"Hostname": name}}
            for name, state in states.items()
        ]

    def inspect_image(self, name: str) -> dict[str, Any]:
        if name not in IMAGES:
            raise ImageNotFound(name)
        return dict(IMAGES[name])

    def inspect_distribution(self, name: str) -> None:
        if name != "in-registry":
            raise APIError("denied", explanation="denied")


def swarm(drained: str = "", host: str = "unix:///d.sock", in_use: str = "") -> Any:
    def call(ask: Callable[[Api], Any]) -> Any:
        return ask(Api(drained))

    services = {"a": {"Spec": {"TaskTemplate": {"ContainerSpec": {"Image": in_use}}}}}
    engine = SimpleNamespace(host=host, swarm_info=lambda: {"NodeID": "manager"}, call=call)
    return SimpleNamespace(engine=engine, services=lambda: services)


def warnings(on: dict[str, str], machines: int = 1, **args: Any) -> str:
    """The warnings, or the argument that is refused."""
    asked = spec(
        **{"backend": "docker", "workers": 1, **args, "container": {"image": "here", **args.get("container", {})}}
    )
    made = make_plan(asked, inventory(asked, *(replace(BOX, name=f"m{number}") for number in range(machines))))
    try:
        found = validate.refuse(swarm(**on), asked, made, ["train.py"], {})
    except SpecError as error:
        return error.where.removeprefix("mnist: ")
    notices = containers.version_notices(asked, containers.installed_version())
    return "\n".join(line for line in found if line not in notices)


MISSING = "image gone is not on the manager and could not be found in its registry (denied)"
OPEN = "docker.host (tcp://d:2375) is not protected by TLS"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, ""),
        ({"on": {"drained": "other"}}, ""),
        ({"on": {"drained": "manager"}}, "docker.host"),
        ({"on": {"host": "tcp://d:2375"}}, OPEN),
        ({"docker": {"encrypted": True}}, ""),
        ({"docker": {"encrypted": True}, "container": {"network": "host"}}, "docker.encrypted"),
        ({"requirements": ["six"]}, ""),
        ({"requirements": ["six"], "machines": 2}, "container.registry"),
        ({"requirements": ["six"], "machines": 2, "container": {"registry": "r.example/team"}}, ""),
        ({"machines": 2}, ""),
        ({"container": {"build": "/nowhere", "image": None}}, "container.build"),
        ({"container": {"image": "in-registry"}}, ""),
        ({"container": {"image": "gone"}}, "container.image"),
        ({"container": {"image": "gone"}, "machines": 2}, MISSING),
        ({"container": {"image": "gone"}, "on": {"in_use": "gone"}}, MISSING),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_and_what_may_not_is_a_warning(args: dict[str, Any], said: str) -> None:
    found = warnings(**{"on": {}, **args})
    assert found.startswith(said)
    assert bool(found) == bool(said)


@pytest.mark.parametrize("target", ["/run", "/run/tfdeploy/", "/run/tfdeploy/secrets", "/tmp/tfdeploy", "/"])
def test_no_mount_hides_what_tfdeploy_needs(target: str) -> None:
    refuse_targets("m", ["/runs", "/tmp/tfdeploy2", "/data"])
    with pytest.raises(SpecError, match=f"m: {target} is reserved for tfdeploy"):
        refuse_targets("m", ["/data", target])


def test_a_folder_must_exist_where_the_engine_is_on_this_machine(tmp_path: Path) -> None:
    validate.refuse_folder("m", str(tmp_path), swarm().engine)
    validate.refuse_folder("m", "/nowhere", swarm(host="ssh://d").engine)
    with pytest.raises(SpecError, match="m: the folder /nowhere does not exist on this machine"):
        validate.refuse_folder("m", "/nowhere", swarm().engine)


@pytest.mark.parametrize(
    ("container", "wrong"),
    [
        ({"image": "gone"}, "'gone', which is not on the engine, is not known"),
        ({"image": "bare"}, "the image 'bare' does not have an entry point"),
        ({"build": "."}, "an image that is not built yet is not known"),
    ],
)
def test_without_a_command_the_entry_point_of_an_image_must_be_known(container: dict[str, str], wrong: str) -> None:
    engine = swarm().engine
    assert validate.entry_point(engine, spec(workers=1, container={"image": "here"})) == ("python", "a.py")
    with pytest.raises(SpecError, match=f"mnist: command: is missing, and .*{wrong}"):
        validate.entry_point(engine, spec(workers=1, container=container))


class Tasks(FakeApi):
    """An engine with tasks of this cluster and of a foreign service."""

    def __init__(self, *tasks: dict[str, Any]) -> None:
        self._tasks = tasks

    def services(self) -> list[dict[str, Any]]:
        return [{"ID": "own", "Spec": {"Labels": cluster_labels(cluster())}}, {"ID": "other", "Spec": {"Labels": {}}}]

    def tasks(self, filters: Any) -> Any:
        return self._tasks


@pytest.mark.parametrize(
    ("changed", "cpus"),
    [({}, 2.0), ({"ServiceID": "own"}, 0.0), ({"Status": {"State": "complete"}}, 0.0), ({"NodeID": None}, 0.0)],
)
def test_what_running_tasks_of_others_have_reserved_is_taken(changed: dict[str, Any], cpus: float) -> None:
    reservations = {"Reservations": {"NanoCPUs": 2_000_000_000}}
    task = {"ServiceID": "other", "Status": {"State": "running"}, "NodeID": "n1", "Spec": {"Resources": reservations}}
    given = {name: value for name, value in {**task, **changed}.items() if value is not None}
    reserved = nodes._reserved(cast(Engine, Tasks(given)), cluster())
    assert reserved.get("n1", {"cpus": 0.0})["cpus"] == cpus


def planned(workers: int, **container: Any) -> tuple[ClusterSpec, Plan]:
    asked = spec(workers=workers, container=container, backend="docker")
    return asked, make_plan(asked, inventory(asked))


def test_a_network_with_an_address_for_each_task_and_those_that_may_be_added_is_accepted() -> None:
    refuse_few_addresses(*planned(251))
    refuse_few_addresses(*planned(300, subnet="10.20.0.0/23"))
    refuse_few_addresses(*planned(900, network="host"))
    elastic = spec(ps=1, workers=2, elastic={"max": 100}, backend="docker")
    refuse_few_addresses(elastic, make_plan(elastic, inventory(elastic)))
    more = spec(ps=1, workers=2, elastic={"max": 130}, backend="docker")
    with pytest.raises(SpecError, match="Docker's own choice is a /24"):
        refuse_few_addresses(more, make_plan(more, inventory(more)))


@pytest.mark.parametrize(
    ("workers", "container", "prefix", "message", "remedy"),
    [
        (252, {}, 24, "needs 257 addresses, .* Docker's own choice is a /24", "Set it to a free network, a /23"),
        (30, {}, 28, "Docker's own choice is a /28", "Set it to a free network, a /26"),
        (300, {"subnet": "10.20.0.0/24"}, 24, "10.20.0.0/24 is too small: the network needs 305", "Use a /23"),
    ],
)
def test_a_network_with_too_few_addresses_is_refused(
    workers: int, container: dict[str, Any], prefix: int, message: str, remedy: str
) -> None:
    with pytest.raises(SpecError, match=message) as refused:
        refuse_few_addresses(*planned(workers, **container), prefix)
    assert (refused.value.where, refused.value.remedy) == ("mnist: container.subnet", f"{remedy} or larger.")


def network(subnet: str, cluster_id: str = "", created: int = 1, **more: Any) -> dict[str, Any]:
    labels = dict(cluster_labels({**cluster(), "id": cluster_id})) if cluster_id else None
    config = {"Config": [{"Subnet": subnet}, {"Subnet": "fd00::/64"}]}
    return {"Labels": labels, "IPAM": config, "Created": f"2026-11-2{created}T10:00:00.5Z", **more}


OWN = cluster()["id"]


@pytest.mark.parametrize(
    ("arguments", "networks", "refused"),
    [
        ({}, [network("10.20.0.0/24", OWN)], False),
        ({}, [network("10.21.0.0/24", OWN), network("10.22.0.0/24"), {"IPAM": {"Config": None}}], False),
        ({}, [network("10.20.0.0/16")], True),
        ({}, [network("10.20.0.0/24", "another123")], True),
        ({}, [network("10.20.0.0/16", OWN)], True),
        ({}, [network("10.20.0.0/24", OWN, 1), network("10.30.0.0/24", OWN, 2)], True),
        ({}, [network("10.20.0.0/24", OWN, 2), network("10.30.0.0/24", OWN, 1)], False),
        ({}, [network("10.20.0.0/24", OWN, Options={"encrypted": ""})], True),
        ({"docker": {"encrypted": True}}, [network("10.20.0.0/24", OWN, Options={"encrypted": ""})], False),
        ({"adopt": OWN}, [network("10.20.0.0/24", OWN)], True),
    ],
)
def test_addresses_of_another_network_are_refused(
    arguments: dict[str, Any], networks: list[dict[str, Any]], refused: bool
) -> None:
    asked = spec(workers=1, container={"subnet": "10.20.0.0/24"}, backend="docker", **arguments)
    if not refused:
        refuse_overlap(cluster(), asked, networks)
        return
    with pytest.raises(SpecError, match=r"10\.20\.0\.0/24 overlaps .*, which another overlay network has"):
        refuse_overlap(cluster(), asked, networks)
