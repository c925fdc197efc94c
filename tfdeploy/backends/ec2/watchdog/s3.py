"""Uploads objects to a folder of an S3 bucket."""

import base64
import hashlib
import hmac
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Callable, Dict, Mapping, NamedTuple, Tuple
from urllib.parse import quote, urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"
_TIMEOUT_SECONDS = 30.0
_CACHE_SECONDS = 60.0
"""How long credentials are used; new ones are available five minutes before the old ones expire:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html"""


class Credentials(NamedTuple):
    """Temporary credentials of the machine's role."""

    key: str
    secret: str
    token: str


class PutError(OSError):
    """S3 refused an object."""


def url_path(key: str) -> str:
    """The path of an object's key in a URL."""
    return "/" + quote(key, safe="/-_.~")


def signed_headers(
    method: str,
    host: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    credentials: Credentials,
    region: str,
    now: str,
) -> Dict[str, str]:
    """All headers of a request for `path` (see `url_path`) at `now` (20261121T120000Z), with the signature (SigV4)."""
    content = hashlib.sha256(body).hexdigest()
    result = {**headers, "host": host, "x-amz-content-sha256": content, "x-amz-date": now}
    if credentials.token:
        result["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(result))
    lines = "".join(f"{name}:{result[name]}\n" for name in sorted(result))
    request = "\n".join([method, path, "", lines, names, content])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    text = "\n".join([_ALGORITHM, now, scope, hashlib.sha256(request.encode()).hexdigest()])
    secret = f"AWS4{credentials.secret}".encode()
    for part in scope.split("/"):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
    credential = f"Credential={credentials.key}/{scope}"
    result["authorization"] = f"{_ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"
    return result


class S3Folder:
    """A folder in a bucket of AWS at its own host; with an `endpoint` of another S3 service the bucket is in the path."""

    def __init__(
        self, bucket: str, folder: str, region: str, endpoint: str, credentials: Callable[[], Credentials]
    ) -> None:
        domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        url = urlsplit(endpoint or f"https://{bucket}.s3.{region}.{domain}")
        self._host = url.netloc
        self._connection = (HTTPSConnection if url.scheme == "https" else HTTPConnection)(
            url.netloc, timeout=_TIMEOUT_SECONDS
        )
        self._prefix = f"{url.path}/{bucket}/".lstrip("/") if endpoint else ""
        self._folder = folder
        self._region, self._read_credentials = region, credentials
        self._credentials, self._until = Credentials("", "", ""), 0.0

    def put(self, name: str, body: bytes) -> None:
        """Upload an object into the folder.

        Raises:
            OSError: the upload failed.
        """
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        checksum = {"x-amz-checksum-sha256": base64.b64encode(hashlib.sha256(body).digest()).decode()}
        key = f"{self._folder}/{name}"
        path = url_path(self._prefix + key)
        headers = signed_headers("PUT", self._host, path, checksum, body, self._current(), self._region, now)
        status, text = self._send(path, body, headers)
        if status != 200:
            raise PutError(f"PUT {key}: {status} {text}")

    def _send(self, path: str, body: bytes, headers: Mapping[str, str]) -> Tuple[int, str]:
        """The status and the body of the response. S3 closes a connection that is not used, so a request that fails on an open one is
        sent again on a new one."""
        was_open = self._connection.sock is not None
        try:
            return self._request(path, body, headers)
        except OSError:
            if not was_open:
                raise
        return self._request(path, body, headers)

    def _request(self, path: str, body: bytes, headers: Mapping[str, str]) -> Tuple[int, str]:
        try:
            self._connection.request("PUT", path, body, dict(headers))
            response = self._connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        except (HTTPException, OSError) as error:
            self._connection.close()
            if isinstance(error, HTTPException):
                raise OSError(repr(error)) from error
            raise

    def _current(self) -> Credentials:
        if time.monotonic() >= self._until:
            self._credentials, self._until = self._read_credentials(), time.monotonic() + _CACHE_SECONDS
        return self._credentials
