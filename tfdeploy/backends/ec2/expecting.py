"""The caretakers of machines that stand are told that tasks come, and what is asked of them now."""

from contextlib import suppress

from ...errors import CommandError
from ..base import Cluster
from . import reach

_TELL = """\
import json, pathlib, subprocess, sys
pathlib.Path("/var/lib/tfdeploy/expected").touch()
settings = pathlib.Path("/etc/tfdeploy/caretaker.json")
told = json.loads(settings.read_text())
now = {**told, "lifetime": float(sys.argv[1]), "idle": float(sys.argv[2])}
if now != told:
    settings.write_text(json.dumps(now, indent=2))
    subprocess.run(["systemctl", "restart", "tfdeploy-caretaker"], check=True)
"""


def tell(cluster: Cluster, machine: str, lifetime: float, idle: float) -> None:
    """Tell one. A machine that cannot be told will be heard of when it is to join."""
    with suppress(CommandError):
        reach.run(cluster, machine, "sudo", "python3", "-c", _TELL, str(lifetime), str(idle))
