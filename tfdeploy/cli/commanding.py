"""What `tfdeploy run` was asked for, as arguments of a cluster; and what its end means to a shell. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..agent.states import DEAD, TENSORBOARD
from ..agent.wiring import FLAGS
from ..errors import SpecError

CLUSTER = "run"
PLACEHOLDERS = (*FLAGS, "chief_hosts", "hostname", "address", "data_dir", "train_dir", "context")

_WHOLE = re.compile(r"(?:--?[\w-]+=)?\{([a-z_]+)\}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Share:
    """What each task of one job gets."""

    count: int
    cpus: float = 0.0
    memory: str = ""
    gpus: int = 0


@dataclass(frozen=True)
class Wanted:
    """One command, and the cluster for it."""

    command: Sequence[str]
    workers: Share
    ps: Share = field(default_factory=lambda: Share(0))
    backend: str = "local"
    code: str = ""
    """Absolute; empty for none."""
    image: str = ""
    user: str = ""
    """The caller as `UID:GID`: the user of containers on a Docker engine. On EC2's machines the caller has no number."""
    env: Sequence[str] = ()
    volumes: Sequence[str] = ()
    here: bool = False
    settings: Sequence[str] = ()
    """Further arguments of the cluster: `NAME=VALUE`."""


def arguments(wanted: Wanted) -> dict[str, Any]:
    """The arguments of the cluster; those of `settings` are left to the stack's configuration.

    Raises:
        SpecError: they cannot be what the user wants.
    """
    _refuse(wanted)
    jobs = {"worker": _job(wanted.workers), **({"ps": _job(wanted.ps)} if wanted.ps.count else {})}
    found = {
        "command": list(wanted.command),
        "workers": wanted.workers.count,
        "ps": wanted.ps.count,
        "jobs": {name: job for name, job in jobs.items() if job},
        "backend": wanted.backend,
        "code": wanted.code,
        "image": wanted.image,
        "user": wanted.user if wanted.backend == "docker" else "",
        "env": pairs("--env", wanted.env),
        "volumes": list(wanted.volumes) if wanted.backend != "local" else [],
        "restart": {"maximum": 0},
        "wait": "0",
    }
    elsewhere = pairs("--set", wanted.settings)
    return {name: value for name, value in found.items() if value and name not in elsewhere}


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Texts of the form NAME=VALUE.

    Raises:
        SpecError: one is not of that form.
    """
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise SpecError(option, f"{text!r} has no value", "It takes NAME=VALUE.")
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def exit_code(job: Mapping[str, Any] | None) -> int:
    """0 for success; else the exit code of the task that failed first, but for TensorBoard (128 + n for a signal), 1 where none did."""
    if job is None or not job["verdict"]:
        return 1
    if job["verdict"][0] == "succeeded":
        return 0
    dead = [task for task in job["tasks"].values() if task["state"] in DEAD and task["job"] != TENSORBOARD]
    first = min(dead, key=lambda task: float(task["ended"]), default=None)
    return int(first["exit_code"] or 1) if first else 1


def _refuse(wanted: Wanted) -> None:
    for part in wanted.command:
        match = _WHOLE.fullmatch(part)
        if match and match[1] not in PLACEHOLDERS:
            known = " ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise SpecError("command", f"{{{match[1]}}} is no placeholder", f"There are: {known}.")
    if wanted.workers.count < 1:
        raise SpecError("--workers", f"is {wanted.workers.count}", "At least one worker runs the command.")
    if wanted.here and wanted.backend != "local":
        wrong = (
            f"cannot be with --on {wanted.backend}: a worker in this terminal is out of the other tasks' reach there"
        )
        raise SpecError("--here", wrong, "Leave one of them out.")
    if wanted.backend == "local":
        _refuse_containers(wanted)


def _refuse_containers(wanted: Wanted) -> None:
    if wanted.image:
        raise SpecError("--image", "is for containers", "Give --on docker or --on ec2 too.")
    for volume in wanted.volumes:
        source, target = (*volume.split(":"), "")[:2]
        if source != target:
            wrong = f"{volume!r} cannot be had without containers: tasks see this machine's folders where they are"
            raise SpecError("--volume", wrong, "Name the same folder twice, or give --on docker.")


def _job(share: Share) -> dict[str, Any]:
    # A number alone is TFMesos's: megabytes.
    memory = f"{share.memory}MiB" if _NUMBER.fullmatch(share.memory) else share.memory
    asked = {"cpus": share.cpus, "memory": memory, "gpus": share.gpus}
    return {name: value for name, value in asked.items() if value}
