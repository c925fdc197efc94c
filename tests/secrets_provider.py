"""A stand-in for HashiCorp Vault, as Pulumi's secrets provider of the stacks of tests.

From a passphrase Pulumi derives a key in each command, which costs 0.2 s of processor time: half of what a small update costs
(`passphrase.NewSymmetricCrypterFromPassphrase`: one million rounds). Tests of what a newcomer types use a passphrase.
"""

import base64
import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STACK_SETTINGS = f"secretsprovider: hashivault://tests\nencryptedkey: {base64.b64encode(b'vault:v1:tests').decode()}\n"
"""What `pulumi stack init --secrets-provider` writes into the settings of a stack: the encrypted key of its state."""

_KEY = base64.b64encode(bytes(range(32))).decode()


class _Vault(BaseHTTPRequestHandler):
    """Decrypts every key to the same one."""

    def do_PUT(self) -> None:
        """https://developer.hashicorp.com/vault/api-docs/secret/transit#decrypt-data"""
        body = json.dumps({"data": {"plaintext": _KEY}}).encode()
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_: object) -> None:
        """Print nothing."""


@cache
def secrets_provider() -> dict[str, str]:
    """Start it in this process; the environment variables that lead Pulumi to it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Vault)
    threading.Thread(target=server.serve_forever, name="vault", daemon=True).start()
    return {"VAULT_SERVER_URL": f"http://127.0.0.1:{server.server_port}", "VAULT_SERVER_TOKEN": "tests"}
