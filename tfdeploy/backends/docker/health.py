"""Checks whether an engine is available and can run clusters."""

import os
import shutil

from docker.errors import APIError

from ...errors import SpecError, Unreachable
from ...paths import pulumi_home
from ..base import FAIL, OK, WARN, Check
from .engine.engine import Engine, engine_address, is_open_tcp

_NO_DOWNLOADS = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
_MAKE_TARGETS = {"docker": "docker", "aws": "ec2"}
"""The target of a clone that installs a provider: `make setup-docker`."""


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
