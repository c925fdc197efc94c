"""The addresses of the overlay network: enough of them for the plan, and never those of another network."""

from typing import Any

import pytest

from tests.unit.cases import inventory, spec
from tests.unit.props import cluster
from tfdeploy.backends.docker.addresses import (
    OverlayNetworks,
    network_change,
    network_subnet,
    overlay_networks,
    refuse_few_addresses,
)
from tfdeploy.backends.docker.labels import cluster_labels
from tfdeploy.backends.docker.validate import refuse_subnet
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import Plan, make_plan
from tfdeploy.spec.cluster import ClusterSpec


def planned(workers: int, **container: Any) -> tuple[ClusterSpec, Plan]:
    asked = spec(workers=workers, container=container, backend="docker")
    return asked, make_plan(asked, inventory(asked))


@pytest.mark.parametrize(
    ("workers", "networks", "subnet"),
    [
        (251, OverlayNetworks(), ""),
        (252, OverlayNetworks(), "10.255.252.0/22"),
        (300, OverlayNetworks(foreign=("10.255.255.0/24", "10.0.0.0/24")), "10.255.248.0/22"),
        (300, OverlayNetworks(own="10.0.4.0/24"), "10.255.252.0/22"),
        (600, OverlayNetworks(own="10.255.254.0/23"), "10.255.240.0/21"),  # not around its own
        (300, OverlayNetworks(former=("10.255.252.0/22",)), "10.255.248.0/22"),
        (400, OverlayNetworks(own="10.77.0.0/22"), "10.77.0.0/22"),
        (10, OverlayNetworks(own="10.77.0.0/22"), "10.77.0.0/22"),
        (10, OverlayNetworks(own="10.0.4.0/24"), ""),
        (30, OverlayNetworks(pools=("10.9.0.0/24", "10.8.0.0/20"), prefix=28), "10.9.0.128/25"),
        (300, OverlayNetworks(pools=("10.9.0.0/24", "10.8.0.0/23"), prefix=24), "10.8.0.0/23"),
    ],
)
def test_docker_chooses_the_network_unless_the_plan_needs_more(
    workers: int, networks: OverlayNetworks, subnet: str
) -> None:
    asked, plan = planned(workers)
    assert network_subnet(asked, plan, networks) == subnet
    assert bool(network_change(plan, networks, subnet)) == (subnet not in ("", networks.own))


@pytest.mark.parametrize(("most", "subnet"), [(100, ""), (130, "10.255.252.0/22")])
def test_workers_that_may_be_added_have_addresses(most: int, subnet: str) -> None:
    asked = spec(ps=1, workers=2, elastic={"max": most}, backend="docker")
    assert network_subnet(asked, make_plan(asked, inventory(asked)), OverlayNetworks()) == subnet


def test_the_machines_network_needs_no_addresses() -> None:
    assert network_subnet(*planned(900, network="host"), OverlayNetworks()) == ""


@pytest.mark.parametrize(
    ("workers", "container", "networks", "message"),
    [
        (300, {"subnet": "10.20.0.0/24"}, {}, "10.20.0.0/24 is too small: the network needs 305 addresses"),
        (300, {}, {"pools": ("10.9.0.0/24",)}, "does not have so many"),
        (1, {"subnet": "10.20.0.0/24"}, {"foreign": ("10.20.0.0/16",)}, "overlaps 10.20.0.0/16"),
        (
            1,
            {"subnet": "10.20.0.0/24"},
            {"former": ("10.20.0.0/24",), "is_adopted": True},
            "the network that the adopted cluster has until",
        ),
        (1, {"subnet": "10.20.0.0/16"}, {"own": "10.20.0.0/24"}, "overlaps 10.20.0.0/24, the network of this cluster"),
        (1, {"subnet": "10.20.0.0/24"}, {"own": "10.20.0.0/24", "is_encrypted": True}, "the network of this cluster"),
        (
            1,
            {"subnet": "10.20.0.0/24"},
            {"own": "10.30.0.0/24", "former": ("10.20.0.0/24",)},
            "overlaps 10.20.0.0/24, the network of this cluster",
        ),
    ],
)
def test_what_cannot_work_is_refused(
    workers: int, container: dict[str, Any], networks: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=message) as refused:
        refuse_subnet(*planned(workers, **container), OverlayNetworks(**networks))
    assert refused.value.where == "mnist: container.subnet"


@pytest.mark.parametrize("former", [(), ("10.20.0.0/16",)])
def test_the_network_that_remains_and_one_elsewhere_are_accepted(former: tuple[str, ...]) -> None:
    networks = OverlayNetworks(own="10.20.0.0/24", former=former)
    refuse_subnet(*planned(1, subnet="10.20.0.0/24"), networks)
    refuse_subnet(*planned(1, subnet="10.40.0.0/24"), networks)


def test_on_a_swarm_of_the_clusters_own_machines_a_subnet_is_needed_for_many_tasks() -> None:
    refuse_few_addresses(*planned(200))
    refuse_few_addresses(*planned(300, subnet="10.20.0.0/22"))
    with pytest.raises(SpecError, match=r"305 addresses.* a network of Docker's does not have so many") as refused:
        refuse_few_addresses(*planned(300))
    assert refused.value.remedy == "Set it to a free network, a /23 or larger."


def test_the_networks_of_a_swarm_are_read() -> None:
    def network(subnet: str, labels: dict[str, str] | None) -> dict[str, Any]:
        return {"Labels": labels, "IPAM": {"Config": [{"Subnet": subnet}, {"Subnet": "fd00::/64"}]}}

    existing = [
        network("10.0.0.0/24", None),
        network("10.1.0.0/22", {**cluster_labels(cluster()), "more": ""}),
        network("10.2.0.0/24", dict(cluster_labels({**cluster(), "id": "another123"}))),
        {"IPAM": {"Config": None}},
    ]
    assert overlay_networks(cluster(), {"DefaultAddrPool": None, "SubnetSize": 24}, existing) == OverlayNetworks(
        own="10.1.0.0/22", foreign=("10.0.0.0/24", "10.2.0.0/24")
    )
    adopted = overlay_networks(cluster(), {}, existing, is_adopted=True)
    assert (adopted.own, adopted.former) == ("", ("10.1.0.0/22",)), "the next network gets other addresses"
    replaced = [
        {**network(subnet, dict(cluster_labels(cluster()))), "Created": f"2026-11-2{day}T10:00:00.5Z"}
        for subnet, day in (("10.1.0.0/22", 1), ("10.3.0.0/22", 3), ("10.2.0.0/22", 2))
    ]
    networks = overlay_networks(cluster(), {}, replaced)
    assert (networks.own, networks.former) == ("10.3.0.0/22", ("10.2.0.0/22", "10.1.0.0/22"))
    encrypted = {**network("10.1.0.0/22", dict(cluster_labels(cluster()))), "Options": {"encrypted": ""}}
    assert overlay_networks(cluster(), {}, [encrypted]).is_encrypted
    assert overlay_networks(cluster(), {"DefaultAddrPool": ["10.9.0.0/16"], "SubnetSize": 26}, []) == OverlayNetworks(
        ("10.9.0.0/16",), 26
    )
