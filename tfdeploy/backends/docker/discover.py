"""What an engine reports without a cluster: the clusters that its objects have labels of, and whether it can run clusters."""

import os
import shutil
from collections.abc import Iterator

from docker.errors import APIError

from ...errors import BackendError, SpecError, Unreachable
from ...paths import pulumi_home
from ..base import FAIL, OK, WARN, Check, DiscoveredCluster
from ..discovery import LabelledObject, group_by_cluster, timestamp
from .engine.engine import Engine, engine_address, is_open_tcp
from .labels import ID_LABEL, LABEL_PREFIX

_NO_DOWNLOADS = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
_MAKE_TARGETS = {"docker": "docker", "aws": "ec2"}
"""The target of a clone that installs a provider: `make setup-docker`."""


def discover_clusters(place: str = "") -> list[DiscoveredCluster]:
    """All clusters with objects on the engine of that address.

    Raises:
        Unreachable: the engine does not respond.
    """
    home = engine_address(place)
    try:
        objects = list(_objects(Engine(home)))
    except APIError as error:
        raise BackendError(f"the Docker engine at {home}: {error.explanation or error}") from None
    return group_by_cluster("docker", home, LABEL_PREFIX, objects)


def _objects(engine: Engine) -> Iterator[LabelledObject]:
    filters = {"label": [ID_LABEL]}
    if engine.call(lambda api: api.info())["Swarm"].get("ControlAvailable"):
        for kind in ("services", "secrets", "configs"):
            for item in engine.call(lambda api, kind=kind: getattr(api, kind)(filters=filters)):  # type: ignore[misc]
                labels = item["Spec"].get("Labels") or {}
                yield LabelledObject(kind.removesuffix("s"), labels, timestamp(item["CreatedAt"]))
    for item in engine.call(lambda api: api.containers(all=True, filters=filters)):
        yield LabelledObject("container", item["Labels"], float(item["Created"]))
    for item in engine.call(lambda api: api.networks(filters=filters)):
        yield LabelledObject("network", item["Labels"], timestamp(item["Created"]))
    for item in engine.call(lambda api: api.volumes(filters=filters))["Volumes"] or []:
        yield LabelledObject("volume", item["Labels"], timestamp(item["CreatedAt"]))
    for item in engine.call(lambda api: api.images(filters=filters)):
        # An image has the time of its oldest build: its layers may have been in the build cache.
        yield LabelledObject("image", item["Labels"], 0.0)


def health(place: str = "") -> list[Check]:
    """Pulumi's provider, the engine, and whether the engine manages a Swarm."""
    return [provider("docker"), *_engine_checks(Engine(engine_address(place)))]


def provider(name: str) -> Check:
    """Whether Pulumi's provider of that name is installed."""
    plugin = f"pulumi-resource-{name}"
    paths = [
        *([shutil.which(plugin)] if shutil.which(plugin) else []),
        *map(str, pulumi_home().glob(f"plugins/resource-{name}-v*[0-9]")),
    ]
    if paths:
        return Check(plugin, OK, str(paths[0]))
    install = f"pulumi plugin install resource {name}"
    if os.environ.get(_NO_DOWNLOADS, "").lower() in ("true", "1"):
        remedy = f"{install}; in a clone: make setup-{_MAKE_TARGETS[name]}"
        return Check(plugin, FAIL, f"is not installed, and {_NO_DOWNLOADS} is set", remedy)
    return Check(plugin, WARN, "is not installed: the first `pulumi up` downloads it", install)


def _engine_checks(engine: Engine) -> list[Check]:
    try:
        info = engine.call(lambda api: api.info())
    except (Unreachable, APIError) as error:
        remedy = (
            "Start it, or set its address: DOCKER_HOST, or `pulumi config set --path tfdeploy:docker.host ssh://…`."
        )
        return [
            Check("docker engine", FAIL, str(error), remedy),
            Check("swarm", FAIL, "cannot be checked without an engine", remedy),
        ]
    version = Check("docker engine", OK, f"{info['ServerVersion']} at {engine.host}")
    if is_open_tcp(engine.host):
        remedy = "Use ssh://, or DOCKER_TLS_VERIFY=1 with DOCKER_CERT_PATH."
        version = Check("docker engine", WARN, f"{engine.host} is not protected by TLS", remedy)
    try:
        swarm = engine.swarm_info()
    except (SpecError, Unreachable) as error:
        remedy = error.remedy if isinstance(error, SpecError) else "Start the other managers of the Swarm."
        wrong = error.wrong if isinstance(error, SpecError) else str(error)
        return [version, Check("swarm", FAIL, wrong, remedy)]
    return [version, Check("swarm", OK, f"managed by this engine, with {swarm.get('Nodes', 1)} machine(s)")]
