"""Calls of a cluster's API by the tests themselves, with the standard library alone."""

import base64
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

TIMEOUT = 60.0


class ApiFailed(Exception):
    """The API server has refused a call, or does not answer (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """The API that a kubeconfig of the tests leads to."""

    def __init__(self, kubeconfig: Path) -> None:
        content = json.loads(kubeconfig.read_text())
        (cluster,), (user,) = content["clusters"], content["users"]
        self._server = cluster["cluster"]["server"]
        authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        login = kubeconfig.with_name(f"{kubeconfig.name}.login.pem")
        if not login.exists():
            login.touch(mode=0o600)
            parts = (user["user"]["client-certificate-data"], user["user"]["client-key-data"])
            login.write_bytes(b"".join(map(base64.b64decode, parts)))
        self._context.load_cert_chain(login)

    def get(self, path: str) -> Any:
        """An object or a list."""
        return self.call("GET", path)

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a list."""
        return list(self.get(path)["items"])

    def apply(self, path: str, body: object) -> Any:
        """Create an object, or make it so (server-side apply)."""
        return self.call("PATCH", f"{path}?fieldManager=tests&force=true", body, "application/apply-patch+yaml")

    def merge(self, path: str, body: object) -> Any:
        """Change fields of an object."""
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str, body: object = None) -> Any:
        """Delete an object."""
        return self.call("DELETE", path, body)

    def call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Any:
        """What a call answers: the object, or the text where it is no JSON.

        Raises:
            ApiFailed: it was refused, or there was no answer.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._server + path, data=data, method=method, headers={"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=TIMEOUT) as answer:
                content, is_json = answer.read().decode(), answer.headers.get_content_type() == "application/json"
        except urllib.error.HTTPError as refused:
            raise ApiFailed(refused.code, refused.read().decode()) from None
        except OSError as reason:
            raise ApiFailed(0, str(reason)) from None
        return json.loads(content) if is_json else content
