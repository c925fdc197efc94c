"""Amazon's Signature Version 4 for S3: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html. Pure."""

import hashlib
import hmac
from typing import Dict, Mapping, NamedTuple
from urllib.parse import quote

_ALGORITHM = "AWS4-HMAC-SHA256"


class Credentials(NamedTuple):
    """Those of the machine's role, for some hours."""

    key: str
    secret: str
    token: str


def path(key: str) -> str:
    """An object's key as it stands in an address."""
    return "/" + quote(key, safe="/-_.~")


def signed(
    method: str,
    host: str,
    address: str,
    headers: Mapping[str, str],
    body: bytes,
    who: Credentials,
    region: str,
    now: str,
) -> Dict[str, str]:
    """All headers of a request for `address` (see `path`) at `now` (20261121T120000Z), its signature among them."""
    content = hashlib.sha256(body).hexdigest()
    known = {**headers, "host": host, "x-amz-content-sha256": content, "x-amz-date": now}
    if who.token:
        known["x-amz-security-token"] = who.token
    names = ";".join(sorted(known))
    lines = "".join(f"{name}:{known[name]}\n" for name in sorted(known))
    request = "\n".join([method, address, "", lines, names, content])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    text = "\n".join([_ALGORITHM, now, scope, hashlib.sha256(request.encode()).hexdigest()])
    secret = f"AWS4{who.secret}".encode()
    for part in scope.split("/"):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
    known["authorization"] = f"{_ALGORITHM} Credential={who.key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return known
