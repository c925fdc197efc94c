"""The instance's metadata (IMDSv2 only), and the firewall rule that blocks them for everything but the watchdog.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
"""

import json
import socket
import subprocess
from contextlib import suppress
from datetime import datetime, timezone
from http.client import HTTPConnection
from typing import Dict, List, Optional, Tuple

from .s3 import Credentials

ADDRESS = "169.254.169.254"
ADDRESS_IPV6 = "fd00:ec2::254"
MARK = 0x7466
"""The mark of packets from the watchdog's own sockets (SO_MARK)."""

_TIMEOUT_SECONDS = 5.0
_LATEST = "/latest/meta-data"


class MetadataError(OSError):
    """The service responds with an error, or without the value."""


def block_metadata(allow_root: bool) -> None:
    """Block the metadata for everything else on this machine and for its containers: they contain the machine's credentials.
    `allow_root` lets root's processes through, which SSM's agent needs. Rules that exist are not added again.

    A container cannot mark packets beyond its own network; on the network of the machine that takes a capability that tasks do
    not have. It is a firewall rule, because a routing rule would drop the responses too, which have no mark (`rp_filter`).
    """
    others = ["-m", "mark", "!", "--mark", hex(MARK), *(["-m", "owner", "!", "--uid-owner", "0"] if allow_root else [])]
    _add_rules("iptables", ADDRESS, others, True)
    with suppress(FileNotFoundError):
        # Without IPv6 there is nothing to block, and the rule is refused.
        _add_rules("ip6tables", ADDRESS_IPV6, others, False)


def _add_rules(program: str, address: str, others: List[str], required: bool) -> None:
    for table, chain, rule in (
        ("mangle", "PREROUTING", ["-j", "DROP"]),
        ("filter", "OUTPUT", [*others, "-j", "REJECT"]),
    ):
        arguments = [chain, "-d", address, *rule]
        check = [program, "-w", "-t", table, "-C", *arguments]
        if subprocess.run(check, stderr=subprocess.DEVNULL, check=False).returncode:
            subprocess.run([program, "-w", "-t", table, "-I", *arguments], check=required)


class Metadata:
    """The metadata service at an address."""

    def __init__(self, address: str = ADDRESS) -> None:
        self._address = address

    def notice(self) -> Optional[Tuple[str, float]]:
        """The interruption notice of a spot instance, and its time in seconds since 1970; None without one.

        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
        """
        body = self._get(f"{_LATEST}/spot/instance-action")
        if body is None:
            return None
        action = json.loads(body)
        at = datetime.strptime(action["time"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
        return f"spot instance is taken away at {action['time']} ({action['action']})", at.timestamp()

    def credentials(self) -> Credentials:
        """The credentials of the machine's role.

        Raises:
            MetadataError: it has no role, or no credentials now.
        """
        folder = f"{_LATEST}/iam/security-credentials/"
        role = self._get(folder)
        if not role:
            raise MetadataError("no credentials for the role: the machine has no instance profile")
        response = json.loads(self._get(folder + role.splitlines()[0]) or "{}")
        if response.get("Code") != "Success":
            raise MetadataError(f"no credentials for the role {role!r}: {response.get('Code')}")
        return Credentials(response["AccessKeyId"], response["SecretAccessKey"], response["Token"])

    def _get(self, path: str) -> Optional[str]:
        """The value at a path; None where there is none."""
        token = self._request("PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
        return None if token is None else self._request("GET", path, {"X-aws-ec2-metadata-token": token})

    def _request(self, method: str, path: str, headers: Dict[str, str]) -> Optional[str]:
        connection = _MarkedConnection(self._address, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            body = response.read().decode()
        finally:
            connection.close()
        if response.status == 404:
            return None
        if response.status != 200:
            raise MetadataError(f"{method} {path}: {response.status}")
        return body


class _MarkedConnection(HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_SECONDS)
        with suppress(PermissionError):  # the firewall then refuses the connection with an error
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)
        self.sock.connect((self.host, self.port))
