"""The metadata service from outside: its container, what it learns of each instance, and notices to spot instances."""

import datetime
import hashlib
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moto.ec2.models.instances import StateReason

from tests.box.account import ec2
from tests.box.image.metadata import ADDRESS, FACTS
from tests.box.machine import Floor
from tests.engine.cli import LABEL, docker

REASON = "Server.SpotInstanceTermination"
_START = f"ip address add {ADDRESS}/32 dev eth0 && exec python3 -u -m tests.box.image.metadata"


class Notices:
    """The spot instances that AWS takes back, and when."""

    def __init__(self) -> None:
        self._ends: dict[str, datetime.datetime] = {}
        self._timers: list[threading.Timer] = []

    def give(self, instance: Any, seconds: float) -> None:
        """Tell an instance that it ends so soon, and end it then."""
        if instance.lifecycle != "spot":
            raise ValueError(f"{instance.id} is no spot instance: AWS leaves it")
        self._ends[instance.id] = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
        timer = threading.Timer(seconds, _take, [instance])
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def of(self, instance_id: str) -> str:
        """When an instance ends, as the metadata service writes it; nothing where nobody has said so."""
        end = self._ends.get(instance_id)
        return f"{end:%Y-%m-%dT%H:%M:%SZ}" if end else ""

    def cancel(self) -> None:
        """Take nothing more."""
        for timer in self._timers:
            timer.cancel()
        for timer in self._timers:
            timer.join()


def _take(instance: Any) -> None:
    if instance.state in ("running", "stopped"):
        instance.terminate()
        instance.state_reason = StateReason(f"{REASON}: Spot instance termination", REASON)


@contextmanager
def metadata(floor: Floor, address: str, notices: Notices) -> Iterator[None]:
    """The service on the machines' network; `address` is its container's own there."""
    folder = floor.home / "metadata"
    folder.mkdir()

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked = self.rfile.readline().decode().strip()
            self.wfile.write(json.dumps(_facts(asked, notices)).encode() + b"\n")

    server = socketserver.ThreadingUnixStreamServer(str(folder / Path(FACTS).name), Answer)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    name = f"{floor.name}-metadata"
    try:
        docker(
            floor.outer,
            *("run", "--detach", f"--name={name}", f"--label={LABEL}={name}", "--cap-add=NET_ADMIN"),
            *(f"--network={floor.name}", f"--ip={address}", f"--volume={folder}:{Path(FACTS).parent}"),
            *(floor.image, "sh", "-c", _START),
        )
        yield
    finally:
        docker(floor.outer, "rm", "--force", "--volumes", name)
        server.shutdown()
        server.server_close()


def _facts(address: str, notices: Notices) -> dict[str, Any]:
    """What there is to know of the instance at this address; little where there is none."""
    for one in ec2().all_instances():
        if one.private_ip == address and one.state != "terminated":
            return {
                "values": {"instance-id": one.id},
                "hops": one.metadata_options.http_put_response_hop_limit,
                "role": _role(one.id),
                "notice": notices.of(one.id),
                "key": hashlib.sha256(one.id.encode()).hexdigest()[:16].upper(),
            }
    return {"values": {}, "hops": 1, "role": "", "notice": "", "key": ""}


def _role(instance_id: str) -> str:
    """The role of the instance's profile."""
    held = ec2().iam_instance_profile_associations.get(instance_id)
    roles = held.iam_instance_profile.roles if held else []
    return str(roles[0].name) if roles else ""
