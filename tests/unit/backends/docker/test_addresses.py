"""The network of a cluster has an address for each task, and none that another network has."""

from typing import Any

import pytest

from tests.unit.cases import inventory, spec
from tests.unit.props import cluster
from tfdeploy.backends.docker.addresses import refuse_few_addresses, refuse_overlap
from tfdeploy.backends.docker.labels import cluster_labels
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import Plan, make_plan
from tfdeploy.spec.cluster import ClusterSpec


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
