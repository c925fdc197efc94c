"""Whether there is an engine that clusters can stand on."""

import os
import shutil

from docker.errors import APIError

from ...errors import SpecError, Unreachable
from ..base import FAIL, OK, WARN, Check
from ..folders import pulumi_home
from .engine import Engine, address

_NO_DOWNLOADS = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
_STEPS = {"docker": "docker", "aws": "ec2"}
"""Which set-up of a clone brings the provider: `make setup-docker`."""


def health(place: str = "") -> list[Check]:
    """Pulumi's provider, the engine, and whether it manages a Swarm."""
    return [provider("docker"), *_engine(Engine(address(place)))]


def provider(name: str) -> Check:
    """Whether Pulumi's provider of that name is here."""
    what = f"pulumi-resource-{name}"
    found = [
        *([shutil.which(what)] if shutil.which(what) else []),
        *map(str, pulumi_home().glob(f"plugins/resource-{name}-v*[0-9]")),
    ]
    if found:
        return Check(what, OK, str(found[0]))
    install = f"pulumi plugin install resource {name}"
    if os.environ.get(_NO_DOWNLOADS, "").lower() in ("true", "1"):
        return Check(
            what, FAIL, f"is not here, and {_NO_DOWNLOADS} is set", f"{install}; in a clone: make setup-{_STEPS[name]}"
        )
    return Check(what, WARN, "is not here: the first `pulumi up` downloads it", install)


def _engine(engine: Engine) -> list[Check]:
    try:
        info = engine.call(lambda api: api.info())
    except (Unreachable, APIError) as error:
        remedy = "Start it, or say where it is: DOCKER_HOST, or `pulumi config set tfdeploy:docker_host ssh://…`."
        return [Check("docker engine", FAIL, str(error), remedy), Check("swarm", FAIL, "no engine, no Swarm", remedy)]
    told = Check("docker engine", OK, f"{info['ServerVersion']} at {engine.host}")
    try:
        swarm = engine.swarm()
    except (SpecError, Unreachable) as error:
        remedy = error.remedy if isinstance(error, SpecError) else "Have its managers come back."
        wrong = error.wrong if isinstance(error, SpecError) else str(error)
        return [told, Check("swarm", FAIL, wrong, remedy)]
    return [told, Check("swarm", OK, f"this engine manages it, with {swarm.get('Nodes', 1)} machine(s)")]
