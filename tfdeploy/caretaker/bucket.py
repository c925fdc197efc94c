"""Puts objects into a bucket of S3's."""

import base64
import hashlib
import time
from http.client import HTTPConnection, HTTPSConnection
from typing import Callable
from urllib.parse import urlsplit

from . import signing

_SECONDS = 30.0
_KNOWN_SECONDS = 60.0
"""How long credentials are used; new ones are there five minutes before the old ones expire:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html"""


class NotPut(OSError):
    """S3 has refused an object."""


class Bucket:
    """One bucket. Without an `endpoint` it is AWS's own, by the bucket's own host; at one of others the bucket is in the path."""

    def __init__(self, name: str, region: str, endpoint: str, credentials: Callable[[], signing.Credentials]) -> None:
        domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        place = urlsplit(endpoint or f"https://{name}.s3.{region}.{domain}")
        self._host, self._secure = place.netloc, place.scheme == "https"
        self._prefix = f"{place.path}/{name}/".lstrip("/") if endpoint else ""
        self._region, self._credentials = region, credentials
        self._who, self._until = signing.Credentials("", "", ""), 0.0

    def put(self, key: str, body: bytes) -> None:
        """Put an object.

        Raises:
            OSError: it has not arrived.
        """
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = {"content-md5": base64.b64encode(hashlib.md5(body).digest()).decode()}
        path = signing.path(self._prefix + key)
        whole = signing.signed("PUT", self._host, path, headers, body, self._known(), self._region, now)
        connection = (HTTPSConnection if self._secure else HTTPConnection)(self._host, timeout=_SECONDS)
        try:
            connection.request("PUT", path, body, whole)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status != 200:
            raise NotPut(f"PUT {key}: {answer.status} {text}")

    def _known(self) -> signing.Credentials:
        if time.monotonic() >= self._until:
            self._who, self._until = self._credentials(), time.monotonic() + _KNOWN_SECONDS
        return self._who
