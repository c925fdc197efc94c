"""What an update removes of a cluster: the objects that it has replaced."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker.errors import APIError

from tests.unit.props import cluster, dependencies
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.docker import cleanup
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.labels import cluster_labels
from tfdeploy.backends.docker.swarm.swarm import Swarm

USED = {**dependencies(), "network": "used"}
FORMER: ClusterRef = {**cluster(), "owner": "somebody@elsewhere"}


class Networks:
    """An engine with networks; the one that was replaced is in use by a container that ends."""

    def __init__(self, in_use: int) -> None:
        self._in_use = in_use
        self.networks_here = {name: cluster_labels(cluster()) for name in ("used", "replaced")}
        self.networks_here["other"] = cluster_labels({**cluster(), "id": "zzzzzzzzzz"})
        self.networks_here["adopted"] = cluster_labels(FORMER)

    def call(self, request: Callable[[Any], Any]) -> Any:
        return request(self)

    remove = call

    def networks(self, filters: Mapping[str, Any]) -> list[dict[str, str]]:
        wanted = dict(label.split("=", 1) for label in filters["label"])
        return [{"Id": name} for name, labels in self.networks_here.items() if wanted.items() <= dict(labels).items()]

    def configs(self, filters: Mapping[str, Any]) -> list[dict[str, str]]:
        return []

    secrets = services = configs

    def remove_network(self, network: str) -> None:
        if network == "replaced" and self._in_use:
            self._in_use -= 1
            raise APIError("in use by task", SimpleNamespace(status_code=400), "in use by task")  # type: ignore[arg-type]
        del self.networks_here[network]


def remaining(engine: Networks) -> set[str]:
    """The networks that an update leaves."""
    cleanup.remove_unused(Swarm(cast(Engine, engine), cluster()), cast(Any, USED))
    return set(engine.networks_here)


def test_a_network_that_was_replaced_is_removed_when_its_last_container_has_ended() -> None:
    assert remaining(Networks(in_use=2)) == {"used", "other"}


def test_an_update_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "_NETWORK_SECONDS", 0.2)
    assert remaining(Networks(in_use=1_000_000)) == {"used", "replaced", "other"}
