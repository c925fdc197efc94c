"""The metadata service of a box's instances: IMDSv2 alone, at 169.254.169.254 on the machines' own link.

What it says of an instance it asks, each time, of the box outside (`FACTS`); who asks is told by the address.
"""

import datetime
import json
import secrets
import socket
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

ADDRESS = "169.254.169.254"
FACTS = "/box/metadata/facts.sock"
LONGEST = 21600
"""Seconds that a token lasts at most."""
CREDENTIALS = "meta-data/iam/security-credentials/"


class Handler(BaseHTTPRequestHandler):
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html."""

    protocol_version = "HTTP/1.1"
    tokens: ClassVar[dict[str, tuple[str, float]]] = {}
    """Whose each is, and until when."""

    def do_PUT(self) -> None:
        """A token, which comes no farther than the instance's hop limit lets it."""
        seconds = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
        if self.headers.get("X-Forwarded-For"):
            self._answer(HTTPStatus.FORBIDDEN)
        elif self.path.rstrip("/") != "/latest/api/token":
            self._answer(HTTPStatus.NOT_FOUND)
        elif not seconds.isdecimal() or not 1 <= int(seconds) <= LONGEST:
            self._answer(HTTPStatus.BAD_REQUEST)
        else:
            token = secrets.token_urlsafe(32)
            self.tokens[token] = self.client_address[0], time.monotonic() + int(seconds)
            self.connection.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, facts(self.client_address[0])["hops"])
            self._answer(HTTPStatus.OK, token, {"X-aws-ec2-metadata-token-ttl-seconds": seconds})

    def do_GET(self) -> None:
        """One value; without a token that is this instance's, nothing."""
        owner, end = self.tokens.get(self.headers.get("X-aws-ec2-metadata-token", ""), ("", 0.0))
        if owner != self.client_address[0] or time.monotonic() > end:
            self._answer(HTTPStatus.UNAUTHORIZED)
            return
        path = self.path.removeprefix("/latest/")
        found = values(facts(owner)).get(path)
        if found is None:
            self._answer(HTTPStatus.NOT_FOUND)
        else:
            self._answer(HTTPStatus.OK, found)

    def log_message(self, form: str, *arguments: Any) -> None:
        """Who asked for what, on the container's log."""
        print(self.client_address[0], form % arguments, flush=True)

    def _answer(self, status: HTTPStatus, text: str | None = None, headers: dict[str, str] | None = None) -> None:
        body = (f"{status.value} - {status.phrase}\n" if text is None else text).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "text/plain", "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def facts(address: str) -> dict[str, Any]:
    """What the box knows of the instance that has this address now."""
    with socket.socket(socket.AF_UNIX) as box:
        box.connect(FACTS)
        with box.makefile("rw") as stream:
            stream.write(f"{address}\n")
            stream.flush()
            found: dict[str, Any] = json.loads(stream.readline())
            return found


def values(known: dict[str, Any]) -> dict[str, str]:
    """Path to value; what an instance does not have is no path of it."""
    found: dict[str, str] = {f"meta-data/{name}": value for name, value in known["values"].items()}
    if role := known["role"]:
        found[CREDENTIALS] = found[CREDENTIALS.rstrip("/")] = role
        found[CREDENTIALS + role] = json.dumps(credentials(known), indent=2)
    if notice := known["notice"]:
        found["meta-data/spot/instance-action"] = json.dumps({"action": "terminate", "time": notice})
    return found


def credentials(known: dict[str, Any]) -> dict[str, str]:
    """Those of the instance's role: moto takes any."""
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    return {
        "Code": "Success",
        "LastUpdated": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "Type": "AWS-HMAC",
        "AccessKeyId": f"ASIA{known['key']}",
        "SecretAccessKey": f"secret-of-{known['values']['instance-id']}",
        "Token": f"token-of-{known['values']['instance-id']}",
        "Expiration": f"{now + datetime.timedelta(hours=6):%Y-%m-%dT%H:%M:%SZ}",
    }


if __name__ == "__main__":
    ThreadingHTTPServer((ADDRESS, 80), Handler).serve_forever()
