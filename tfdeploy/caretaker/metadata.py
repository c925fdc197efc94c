"""The instance's metadata, by IMDSv2 only, and the rule that closes it to all but the caretaker.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
"""

import json
import socket
import subprocess
from contextlib import suppress
from datetime import datetime, timezone
from http.client import HTTPConnection
from typing import Dict, Optional, Tuple

from .signing import Credentials

ADDRESS = "169.254.169.254"
MARK = 0x7466
"""What the caretaker's own sockets carry (SO_MARK)."""

_SECONDS = 5.0
_LATEST = "/latest/meta-data"


class Refused(OSError):
    """The service answers, but not with what was asked for."""


def close(but_root: bool) -> None:
    """Let nobody else reach it, from this machine or through it: whoever can has the machine's role. `but_root` lets root of this
    machine through, for what else there is on it.

    A mark on packets does not leave a container's own network; to set one on the machine's takes a capability that tasks lack. A
    firewall, because a rule of routes would have the kernel drop the answers too, which carry no mark (`rp_filter`).
    """
    others = ["-m", "mark", "!", "--mark", hex(MARK), *(["-m", "owner", "!", "--uid-owner", "0"] if but_root else [])]
    for table, chain, rule in (
        ("mangle", "PREROUTING", ["-j", "DROP"]),
        ("filter", "OUTPUT", [*others, "-j", "REJECT"]),
    ):
        place = [chain, "-d", ADDRESS, *rule]
        there = subprocess.run(["iptables", "-w", "-t", table, "-C", *place], stderr=subprocess.DEVNULL, check=False)
        if there.returncode:
            subprocess.run(["iptables", "-w", "-t", table, "-I", *place], check=True)


class Metadata:
    """Asks the service at an address."""

    def __init__(self, address: str = ADDRESS) -> None:
        self._address = address

    def notice(self) -> Optional[Tuple[str, float]]:
        """What is to become of a spot instance, and when, in seconds since 1970; None while it may stay.

        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
        """
        found = self._get(f"{_LATEST}/spot/instance-action")
        if found is None:
            return None
        told = json.loads(found)
        at = datetime.strptime(told["time"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
        return f"spot instance is taken away at {told['time']} ({told['action']})", at.timestamp()

    def credentials(self) -> Credentials:
        """Those of the machine's role.

        Raises:
            Refused: it has none, or there are none now.
        """
        place = f"{_LATEST}/iam/security-credentials/"
        role = self._get(place)
        told = json.loads((role and self._get(place + role.splitlines()[0])) or "{}")
        if told.get("Code") != "Success":
            raise Refused(f"no credentials for the role {role!r}: {told.get('Code')}")
        return Credentials(told["AccessKeyId"], told["SecretAccessKey"], told["Token"])

    def _get(self, path: str) -> Optional[str]:
        """What stands there; None where nothing does."""
        token = self._ask("PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
        return None if token is None else self._ask("GET", path, {"X-aws-ec2-metadata-token": token})

    def _ask(self, method: str, path: str, headers: Dict[str, str]) -> Optional[str]:
        connection = _Marked(self._address, timeout=_SECONDS)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise Refused(f"{method} {path}: {answer.status}")
        return text


class _Marked(HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        with suppress(PermissionError):  # then the rule refuses the connection, and says so
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)
        self.sock.connect((self.host, self.port))
