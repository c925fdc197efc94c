"""What a launcher in a container finds out by itself: the engine could not say it beforehand."""

import os
import re
import socket
import tempfile
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

MACHINE = "TFDEPLOY_MACHINE"
"""Set by the engine to the name of the machine."""

NOTICE = Path("/tfdeploy/machine/notice")
"""Where a machine that is about to go says why."""

_RESOURCE = "DOCKER_RESOURCE_"
"""How Swarm tells a task which generic resources are its own:
https://github.com/moby/swarmkit/blob/master/design/generic_resources.md"""

_IDENTITY = re.compile(r"/containers/([0-9a-f]{64})/")


def completed(settings: Dict[str, Any], base: Mapping[str, str]) -> Dict[str, Any]:
    """The settings with machine, container, GPUs and host filled in where they are not given."""
    return {
        "machine": base.get(MACHINE, ""),
        "container": _identity(),
        "gpus": _gpus(base),
        **settings,
        "host": settings["host"] or own_address(settings["keeper"]),
    }


def home(base: Mapping[str, str]) -> str:
    """HOME of the program: the user's own folder, or one for temporary files where there is none that the user may write in.

    The engine says `/` for a user whom the image does not know.
    """
    own = base.get("HOME", "")
    return own if own and os.access(own, os.W_OK) else tempfile.gettempdir()


def notice() -> str:
    """Why the machine is about to go; empty when it is not known to."""
    try:
        return NOTICE.read_text().strip()
    except OSError:
        return ""


def _gpus(base: Mapping[str, str]) -> Optional[str]:
    """What CUDA_VISIBLE_DEVICES shall be; None where the engine only counts its GPUs and shows the right ones itself."""
    values = [value for name, value in base.items() if name.startswith(_RESOURCE)]
    return None if any(value.isdigit() for value in values) else ",".join(values)


def _identity() -> str:
    found = _IDENTITY.search(Path("/proc/self/mountinfo").read_text())
    return found.group(1)[:12] if found else ""


def own_address(keeper: str) -> str:
    """The address from which this machine speaks to `keeper` (host:port), so that its peers can reach it too."""
    host, _, port = keeper.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))
        address: str = probe.getsockname()[0]
        return address
