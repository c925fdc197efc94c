"""What an update removes of a cluster: the objects that it has replaced. Which volumes `pulumi destroy` removes, with which image, and
what it says about those that still exist."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tests.unit.backends.docker.fake_engine import FakeApi, api_error
from tests.unit.props import cluster, dependencies, run_props
from tfdeploy.backends.base import CONTROLLER, ClusterRef
from tfdeploy.backends.container_layout import TRAIN_FOLDER
from tfdeploy.backends.docker import cleanup
from tfdeploy.backends.docker.cleanup import remove_all
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.labels import (
    RECORD_VOLUME,
    TRAIN_VOLUME,
    cluster_labels,
    own_volume_labels,
    user_volume_labels,
    volume_name,
)
from tfdeploy.backends.docker.swarm.services import controller_service
from tfdeploy.backends.docker.swarm.swarm import Swarm
from tfdeploy.spec.docker import CLEANUP_IMAGE

CLUSTER = cluster()
RECORD, TRAIN = volume_name(CLUSTER, RECORD_VOLUME), volume_name(CLUSTER, TRAIN_VOLUME)
NODES = {"node0": "m0", "node1": "m1"}


def _has(labels: Mapping[str, str], filters: Mapping[str, Any]) -> bool:
    return all(part.split("=", 1)[1] == labels.get(part.split("=", 1)[0]) for part in filters.get("label", []))


@dataclass
class TwoMachines(FakeApi):
    """The manager's engine `m0` of a Swarm with a second machine, on which the helper ends in a given state."""

    helper_state: str = "complete"
    volumes_here: dict[str, Mapping[str, str]] = field(default_factory=dict)
    services_here: dict[str, Any] = field(default_factory=dict)
    helpers: list[Any] = field(default_factory=list)
    foreign_services: dict[str, Any] = field(default_factory=dict)
    foreign_volumes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    networks_here: dict[str, Mapping[str, str]] = field(default_factory=dict)
    containers_here: list[str] = field(default_factory=list)
    in_use: int = 0
    """So many times it refuses to remove the network `replaced`."""

    def swarm_info(self) -> dict[str, Any]:
        return {"NodeID": "node0"}

    def name(self) -> str:
        return "m0"

    def nodes(self) -> list[Any]:
        status = {"State": "ready"}
        return [{"ID": key, "Description": {"Hostname": name}, "Status": status} for key, name in NODES.items()]

    def services(self, filters: Any) -> list[Any]:
        return [item for item in self.services_here.values() if _has(item["Spec"]["Labels"], filters)]

    def create_service(self, template: Any, name: str, labels: Any, mode: Any) -> None:
        self.helpers.append(template)
        self.services_here[name] = {"ID": name, "Spec": {"Name": name, "Labels": labels, "TaskTemplate": template}}

    def remove_service(self, service: str) -> None:
        self.services_here.pop(service, None)

    def tasks(self, filters: Any) -> list[Any]:
        status = {"State": self.helper_state, "Err": "" if self.helper_state == "complete" else "No such image: gone"}
        return [{"ID": "1", "ServiceID": name, "NodeID": "node1", "Status": status} for name in self.services_here]

    def containers(self, filters: Any, **options: Any) -> list[Any]:
        is_asked_for = "running" in filters.get("status", ["running"])
        return [{"Id": name} for name in self.containers_here if is_asked_for]

    def kill(self, container: str, signal: str) -> None:
        assert signal == "SIGTERM"
        self.containers_here.remove(container)
        if container == "ended":
            raise api_error(409, "not running")

    def networks(self, filters: Any) -> list[Any]:
        return [{"Id": name} for name, labels in self.networks_here.items() if _has(labels, filters)]

    def remove_network(self, network: str) -> None:
        if network == "replaced" and self.in_use:
            self.in_use -= 1
            raise api_error(400, "in use by task")
        del self.networks_here[network]

    def configs(self, filters: Any) -> list[Any]:
        return []

    secrets = images = configs

    def volumes(self, filters: Any) -> dict[str, Any]:
        return {"Volumes": [{"Name": name} for name, labels in self.volumes_here.items() if _has(labels, filters)]}

    def remove_volume(self, volume: str) -> None:
        del self.volumes_here[volume]


def destroyed(engine: TwoMachines, retain: bool, creator: ClusterRef = CLUSTER) -> str:
    """What `destroy` says of a cluster with the default `train_dir` and a volume that the user named. `creator` has the owner who
    created its volumes."""
    volumes = {RECORD: own_volume_labels(creator, RECORD_VOLUME), TRAIN: own_volume_labels(creator, TRAIN_VOLUME)}
    engine.volumes_here = {**volumes, "dataset": user_volume_labels(CLUSTER), **engine.foreign_volumes}
    props = run_props({"mounts": [{"Type": "volume", "Source": TRAIN, "Target": TRAIN_FOLDER}]})
    desired = controller_service(props)
    labels, template = dict(desired.labels), dict(desired.template)
    controller = {"ID": CONTROLLER, "Spec": {"Name": desired.name, "Labels": labels, "TaskTemplate": template}}
    engine.services_here = {CONTROLLER: controller, **engine.foreign_services}
    return remove_all(Swarm(cast(Engine, engine), CLUSTER), 5.0, retain, {"m0", "m1"})


def test_the_checkpoints_are_retained_and_nothing_runs_on_other_machines() -> None:
    engine = TwoMachines()
    said = destroyed(engine, retain=True)
    assert engine.volumes_here.keys() == {TRAIN, "dataset"}
    assert engine.helpers == []
    assert said == (
        f"the checkpoints are retained in the volume {TRAIN} on m0, m1; `docker volume rm {TRAIN}` on each removes them"
    )


def test_containers_whose_services_were_removed_by_hand_are_stopped() -> None:
    """Docker before 23 lets those of a job run on."""
    engine = TwoMachines(containers_here=["worker-1", "ended", "worker-0"])
    destroyed(engine, retain=True)
    assert engine.containers_here == []


def test_an_adopted_cluster_is_removed_with_what_its_former_owner_created() -> None:
    engine = TwoMachines()
    destroyed(engine, retain=False, creator={**CLUSTER, "owner": "somebody@elsewhere"})
    assert engine.volumes_here.keys() == {"dataset"}
    (helper,) = engine.helpers
    assert "somebody" not in json.dumps(helper)
    assert CLUSTER["owner"] not in json.dumps(helper["ContainerSpec"]["Command"])


def test_another_cluster_of_the_same_words_keeps_everything() -> None:
    engine, other = TwoMachines(), {**CLUSTER, "id": "zzzzzzzzzz"}
    labels = own_volume_labels(cast(ClusterRef, other), TRAIN_VOLUME)
    foreign = {"ID": "foreign", "Spec": {"Name": "foreign", "Labels": labels, "TaskTemplate": {}}}
    engine.foreign_services, engine.foreign_volumes = {"foreign": foreign}, {"checkpoints": labels}
    destroyed(engine, retain=False)
    assert engine.services_here == {"foreign": foreign}
    assert engine.volumes_here.keys() == {"dataset", "checkpoints"}


def test_a_small_image_removes_the_checkpoints_of_other_machines_and_never_the_users_image() -> None:
    engine = TwoMachines()
    assert destroyed(engine, retain=False) == ""
    assert engine.volumes_here.keys() == {"dataset"}, "a volume that the user named is never deleted"
    (helper,) = engine.helpers
    assert helper["ContainerSpec"]["Image"] == CLEANUP_IMAGE
    assert f"tfdeploy.volume={TRAIN_VOLUME}" in helper["ContainerSpec"]["Command"]


def test_without_that_image_destroy_ends_and_names_the_volume_and_the_command() -> None:
    engine = TwoMachines(helper_state="rejected")
    said = destroyed(engine, retain=False)
    assert engine.volumes_here.keys() == {"dataset"}
    assert said.startswith(f"the volume {TRAIN} could not be removed from m1 (No such image: gone); ")
    assert f"run `docker volume rm {TRAIN}` where it exists" in said


def test_a_network_that_was_replaced_is_removed_when_its_last_container_has_ended() -> None:
    networks = {name: cluster_labels(CLUSTER) for name in ("used", "replaced")}
    networks["other"] = cluster_labels({**CLUSTER, "id": "zzzzzzzzzz"})
    networks["adopted"] = cluster_labels({**CLUSTER, "owner": "somebody@elsewhere"})
    engine = TwoMachines(networks_here=networks, in_use=2)
    cleanup.remove_unused(Swarm(cast(Engine, engine), CLUSTER), cast(Any, {**dependencies(), "network": "used"}))
    assert engine.networks_here.keys() == {"used", "other"}
