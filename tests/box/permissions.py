"""The permissions of a user in moto: calls whose actions the user's policy does not name are denied as AWS denies them.

Resources and conditions are not evaluated: moto knows few of them. The unit tests of the policy compare them as text.
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from moto.core.responses import BaseResponse
from moto.s3.exceptions import BucketAccessDeniedError
from moto.s3.responses import S3Response

from tests.box.actions import iam_actions

_OF_BUCKETS = {
    "GET": {
        "policy": "GetBucketPolicy",
        "publicAccessBlock": "GetPublicAccessBlock",
        "tagging": "GetBucketTagging",
        "": "ListObjectsV2",
    },
    "HEAD": {"": "HeadBucket"},
    "PUT": {
        "policy": "PutBucketPolicy",
        "publicAccessBlock": "PutPublicAccessBlock",
        "tagging": "PutBucketTagging",
        "": "CreateBucket",
    },
    "DELETE": {"": "DeleteBucket"},
    "POST": {"delete": "DeleteObjects"},
}
"""Method and query of a call for a bucket, to its name; the empty query for all others."""

_OF_OBJECTS = {
    "GET": "GetObject",
    "HEAD": "HeadObject",
    "PUT": "PutObject",
    "POST": "PutObject",
    "DELETE": "DeleteObject",
}

_CALLER = re.compile(r"Credential=([^/]+)/")
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-authentication-methods.html"""


class Permissions:
    """What some access keys may do; all others may do everything."""

    def __init__(self, access_keys: Collection[str], actions: Collection[str]) -> None:
        self._access_keys = frozenset(access_keys)
        self._actions = frozenset(actions)
        self._lock = threading.Lock()
        self.denied: Counter[str] = Counter()
        """Action to how often it was denied."""
        self.used: Counter[str] = Counter()
        """Action to how often it was allowed."""

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Have moto deny what is not allowed."""
        call_action = BaseResponse.call_action
        authorize = S3Response._authenticate_and_authorize_s3_action

        def call(response: Any) -> Any:
            service = str(response.boto3_service_name)
            denied = self._denied(response, iam_actions(service, str(response._get_action()), _parameters(response)))
            return _denial(service, denied) if denied else call_action(response)

        def check(response: Any, bucket_name: str | None = None, key_name: str | None = None) -> None:
            operation = _s3_operation(response, bool(key_name))
            if self._denied(response, iam_actions("s3", operation)):
                raise BucketAccessDeniedError(bucket=bucket_name or "")
            authorize(response, bucket_name, key_name)

        with ExitStack() as stack:
            stack.enter_context(patch.object(BaseResponse, "call_action", call))
            stack.enter_context(patch.object(S3Response, "_authenticate_and_authorize_s3_action", check))
            yield

    def _denied(self, response: Any, actions: set[str]) -> str:
        """The first of these actions that the caller may not do; empty for none."""
        caller = _CALLER.search(str(response.headers.get("Authorization", "")))
        if not caller or caller[1] not in self._access_keys:
            return ""
        with self._lock:
            denied = sorted(actions - self._actions)
            (self.denied if denied else self.used).update(denied or actions)
        return denied[0] if denied else ""


def _parameters(response: Any) -> Collection[str]:
    """The names of a call's parameters."""
    names = list(response.querystring)
    if str(response.boto3_service_name) == "efs" and response.body:
        names += json.loads(response.body)
    return names


def _s3_operation(response: Any, has_key: bool) -> str:
    method, query = str(response.method), parse_qs(urlsplit(str(response.uri)).query, keep_blank_values=True)
    if has_key:
        return _OF_OBJECTS[method]
    by_query = _OF_BUCKETS[method]
    return next((by_query[name] for name in query if name in by_query), by_query.get("", "PutObject"))


def _denial(service: str, action: str) -> tuple[int, dict[str, str], str]:
    """The response as the service's protocol has it."""
    message = f"User is not authorized to perform: {action} because no identity-based policy allows the {action} action"
    if service == "ec2":
        error = f"<Error><Code>UnauthorizedOperation</Code><Message>{message}</Message></Error>"
        return (
            403,
            {"Content-Type": "text/xml"},
            f"<Response><Errors>{error}</Errors><RequestID>x</RequestID></Response>",
        )
    if service in ("iam", "sts"):
        error = f"<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{message}</Message></Error>"
        return 403, {"Content-Type": "text/xml"}, f"<ErrorResponse>{error}<RequestId>x</RequestId></ErrorResponse>"
    code = "AccessDeniedException"
    body = json.dumps({"__type": code, "ErrorCode": code, "message": message, "Message": message})
    return 403 if service == "efs" else 400, {"x-amzn-ErrorType": code, "Content-Type": "application/json"}, body
