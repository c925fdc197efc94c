"""IMDSv2 as the watchdog speaks it, against a small one on loopback; the rule that closes it, against a stand-in for `iptables`."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tfdeploy.backends.ec2.watchdog import instance_metadata
from tfdeploy.backends.ec2.watchdog.instance_metadata import Metadata, MetadataError
from tfdeploy.backends.ec2.watchdog.s3 import Credentials

ROLE = "/latest/meta-data/iam/security-credentials/"
NOTICE = "/latest/meta-data/spot/instance-action"
GOOD = {"Code": "Success", "AccessKeyId": "ASIA", "SecretAccessKey": "secret", "Token": "token"}


class Imds(ThreadingHTTPServer):
    """What an instance finds at 169.254.169.254, IMDSv1 switched off."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.there: dict[str, str] = {}
        self.asked: list[str] = []
        self.tokens = True


class Handler(BaseHTTPRequestHandler):
    server: Imds

    def do_PUT(self) -> None:
        lasts = int(self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", 0))
        good = self.path == "/latest/api/token" and 1 <= lasts <= 21600 and self.server.tokens
        self.answer(200 if good else 403, "the-token")

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.headers.get("X-aws-ec2-metadata-token") != "the-token":
            self.answer(401, "")
        elif self.path in self.server.there:
            self.answer(200, self.server.there[self.path])
        else:
            self.answer(404, "<html>404 - Not Found</html>")

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_request(self, *_: object) -> None:
        pass


@pytest.fixture
def imds() -> Iterator[Imds]:
    server = Imds()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def about(imds: Imds) -> Metadata:
    return Metadata(f"127.0.0.1:{imds.server_port}")


def test_a_notice_says_what_and_when(imds: Imds, about: Metadata) -> None:
    imds.there[NOTICE] = json.dumps({"action": "terminate", "time": "2026-11-21T08:22:00Z"})
    assert about.notice() == ("spot instance is taken away at 2026-11-21T08:22:00Z (terminate)", 1795249320.0)


def test_the_roles_credentials(imds: Imds, about: Metadata) -> None:
    imds.there |= {ROLE: "the-role", f"{ROLE}the-role": json.dumps(GOOD)}
    assert about.credentials() == Credentials("ASIA", "secret", "token")


@pytest.mark.parametrize(
    "there", [{}, {ROLE: "the-role"}, {ROLE: "the-role", f"{ROLE}the-role": '{"Code": "AssumeRoleUnauthorizedAccess"}'}]
)
def test_an_instance_without_credentials_says_so(imds: Imds, about: Metadata, there: dict[str, str]) -> None:
    imds.there |= there
    with pytest.raises(MetadataError, match="no credentials for the role"):
        about.credentials()


IPTABLES = """#!/bin/sh
# iptables -w -t TABLE -C|-I CHAIN RULE…
table=$3 verb=$4
shift 4
case $verb in
-C) grep -qx -e "$table $*" "$0.rules" 2>/dev/null ;;
-I) echo "$table $*" >>"$0.rules" ;;
esac
"""


@pytest.mark.parametrize(("but_root", "more"), [(False, ""), (True, " -m owner ! --uid-owner 0")])
@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254"])
def test_the_firewall_lets_marked_sockets_through_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, but_root: bool, more: str
) -> None:
    for name in ("iptables", "ip6tables"):
        (tmp_path / name).write_text(IPTABLES)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for _ in range(2):
        instance_metadata.block_metadata(but_root)
    rules = tmp_path / ("ip6tables.rules" if ":" in address else "iptables.rules")
    assert rules.read_text().splitlines() == [
        f"mangle PREROUTING -d {address} -j DROP",
        f"filter OUTPUT -d {address} -m mark ! --mark 0x7466{more} -j REJECT",
    ]
