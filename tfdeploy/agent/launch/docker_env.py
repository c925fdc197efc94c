"""What a launcher finds out about its container, because the backend cannot know it in advance."""

import os
import re
import socket
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Mapping, Optional

from ..model.settings import TaskSettings

MACHINE = "TFDEPLOY_MACHINE"
"""The variable with the machine's name, set by the backend."""

NOTICE = Path("/tfdeploy/machine/notice")
"""The file in which a machine that is about to be shut down writes the reason."""

_RESOURCE = "DOCKER_RESOURCE_"
"""The prefix of the variables with a task's generic resources under Swarm:
https://github.com/moby/swarmkit/blob/master/design/generic_resources.md"""

_CONTAINER_ID = re.compile(r"/containers/([0-9a-f]{64})/")


def complete(settings: TaskSettings, env: Mapping[str, str]) -> TaskSettings:
    """The settings with machine, container, GPUs and host."""
    return replace(
        settings,
        machine=settings.machine or env.get(MACHINE, ""),
        container=settings.container or _container_id(),
        gpus=settings.gpus if settings.gpus is not None else _gpus(env),
        host=settings.host or own_address(settings.controller),
    )


def home(env: Mapping[str, str]) -> str:
    """HOME for the program: the user's own folder, or the folder for temporary files where the user's cannot be written.

    Docker sets it to `/` for a user that the image does not know.
    """
    folder = env.get("HOME", "")
    return folder if folder and os.access(folder, os.W_OK) else tempfile.gettempdir()


def notice() -> str:
    """Why the machine is about to be shut down; empty when it is not."""
    try:
        return NOTICE.read_text().strip()
    except OSError:
        return ""


def _gpus(env: Mapping[str, str]) -> Optional[str]:
    """CUDA_VISIBLE_DEVICES; None where the engine counts GPUs and gives the container the right ones."""
    values = [value for name, value in env.items() if name.startswith(_RESOURCE)]
    return None if any(value.isdigit() for value in values) else ",".join(values)


def _container_id() -> str:
    match = _CONTAINER_ID.search(Path("/proc/self/mountinfo").read_text())
    return match.group(1)[:12] if match else ""


def own_address(controller: str) -> str:
    """The IP address from which this machine reaches `controller` (host:port): other tasks can reach it too."""
    host, _, port = controller.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))
        address: str = probe.getsockname()[0]
        return address
