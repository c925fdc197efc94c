"""The table of AWS's errors: each exception and each code is of one kind, which has one remedy."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import boto3.exceptions
import botocore.exceptions as exceptions
import pytest
from botocore.exceptions import ClientError

from tfdeploy.backends.ec2.aws.errors import TABLE, Kind, aws_errors, kind_of, provider_error, translated
from tfdeploy.errors import BackendError, SpecError, TfdeployError, Unreachable

REGION = "us-west-2"


def below(base: type[Exception]) -> Iterator[type[Exception]]:
    for kind in base.__subclasses__():
        yield kind
        yield from below(kind)


def made(kind: type[Exception]) -> Exception:
    """An exception of this class, as if botocore raised it."""
    error = kind.__new__(kind)
    Exception.__init__(error, f"a {kind.__name__}")
    vars(error).update(kwargs={}, last_response={})
    return error


def refusal(
    code: str, message: str = "no", operation: str = "DescribeInstances", status: int = 400, **headers: str
) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers},
    }
    return ClientError(response, operation)


EXCEPTIONS = sorted(
    {
        kind
        for base in (exceptions.BotoCoreError, boto3.exceptions.Boto3Error)
        for kind in below(base)
        if kind.__module__.startswith(("botocore", "boto3"))
    },
    key=lambda kind: kind.__name__,
)
NOTHING_RESPONDED = {
    "ConnectionError",
    "ConnectionClosedError",
    "ConnectTimeoutError",
    "EndpointConnectionError",
    "ProxyConnectionError",
    "ReadTimeoutError",
}


@pytest.mark.parametrize("kind", EXCEPTIONS)
def test_an_exception_is_unreachable_only_where_nothing_responded(kind: type[Exception]) -> None:
    with pytest.raises(TfdeployError) as error, aws_errors(REGION):
        raise made(kind)
    assert isinstance(error.value, Unreachable) == (kind.__name__ in NOTHING_RESPONDED)
    assert not re.search(r"[{}]|\. *$", str(error.value).removesuffix("."))


@pytest.mark.parametrize("field", ["exceptions", "codes"])
def test_each_name_is_in_one_row(field: str) -> None:
    names = Counter(name for row in TABLE.values() for name in getattr(row, field).split())
    assert [name for name, count in names.items() if count > 1] == []


CODES = {
    Kind.LOGIN: "ExpiredToken InvalidClientTokenId SignatureDoesNotMatch 400 401",
    Kind.CLOCK: "RequestTimeTooSkewed",
    Kind.PERMISSION: "UnauthorizedOperation AccessDenied 403 PendingVerification KMS.AccessDeniedException",
    Kind.REGION: "OptInRequired PermanentRedirect 301 AuthorizationHeaderMalformed",
    Kind.QUOTA: "VcpuLimitExceeded TooManyBuckets LimitExceededException Client.VolumeLimitExceeded",
    Kind.CAPACITY: "InsufficientInstanceCapacity NoFreeAddressesInSubnet SpotMaxPriceTooLow Server.InsufficientInstanceCapacity",
    Kind.THROTTLING: "RequestLimitExceeded SlowDown TooManyRequestsException 429",
    Kind.GONE: "InvalidInstanceID.NotFound InvalidAMIID.Unavailable NoSuchBucket NoSuchEntity InvalidPlacementGroup.Unknown 404",
    Kind.CONFLICT: "DependencyViolation VolumeInUse DeleteConflict OperationAborted IncorrectInstanceState",
    Kind.FAILURE: "InternalError ServiceUnavailable 500 503",
    Kind.REFUSED: "InvalidParameterValue InvalidInstanceID.Malformed NeverSeenBefore",
}


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in CODES.items() for code in codes.split()])
def test_a_code_is_of_one_kind_and_the_message_has_it_and_a_remedy(kind: Kind, code: str) -> None:
    error = refusal(code, "what AWS says.")
    found = translated(error, REGION)
    assert (kind_of(error), str(found).startswith(f"AWS: An error occurred ({code}) when calling ")) == (kind, True)
    assert not isinstance(found, Unreachable)
    assert isinstance(found, BackendError) == (kind in (Kind.THROTTLING, Kind.CONFLICT, Kind.FAILURE))
    assert str(found).partition("what AWS says (us-west-2). ")[2]


LATE = "Signature expired: 20261125T100000Z is now earlier than 20261125T110000Z (20261125T110500Z - 5 min.)"
PRODUCT = "In order to use this AWS Marketplace product you need to accept terms and subscribe."


@pytest.mark.parametrize(
    ("code", "status", "message", "kind"),
    [
        ("Odd", 403, "no", Kind.PERMISSION),
        ("Odd", 401, "no", Kind.LOGIN),
        ("Odd", 404, "no", Kind.GONE),
        ("Odd", 429, "no", Kind.THROTTLING),
        ("Odd", 503, "no", Kind.FAILURE),
        ("OddLimitExceeded", 400, "no", Kind.QUOTA),
        ("InvalidOddID.NotFound", 400, "no", Kind.GONE),
        ("Odd", 400, "no", Kind.REFUSED),
        ("SignatureDoesNotMatch", 400, LATE, Kind.CLOCK),
        ("InvalidSignatureException", 400, LATE, Kind.CLOCK),
        ("OptInRequired", 400, PRODUCT, Kind.PERMISSION),
    ],
)
def test_an_unknown_code_goes_by_its_name_and_its_status_and_some_by_the_message(
    code: str, status: int, message: str, kind: Kind
) -> None:
    assert kind_of(refusal(code, message, status=status)) is kind


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate", "AWS_CA_BUNDLE"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate is not yet valid", "Set the clock"),
    ],
)
def test_a_certificate_that_is_not_accepted_is_not_unreachable(reason: str, advice: str) -> None:
    error = translated(exceptions.SSLError(endpoint_url="https://x", error=reason), REGION)
    assert not isinstance(error, Unreachable)
    assert advice in str(error)


def test_an_error_of_our_own_code_passes() -> None:
    for error in (ValueError("ours"), KeyError("ours"), SpecError("where", "wrong", "remedy")):
        with pytest.raises(type(error)) as raised, aws_errors(REGION):
            raise error
        assert raised.value is error


GO = (
    "1 error occurred:\n\t* creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: "
    "cb90a8d4-2209-458c-b3b9-f7c53b5d8e1d, api error {}: {}\n\n"
)
BOTO = "AWS: An error occurred ({}) when calling the RunInstances operation (reached max retries: 4): {}"


@pytest.mark.parametrize("form", [GO, BOTO])
def test_an_error_of_pulumis_provider_has_the_same_sentence(form: str) -> None:
    message = "You have requested more vCPU capacity than your current vCPU limit of 8"
    error = provider_error(form.format("VcpuLimitExceeded", message), REGION)
    assert str(error) == str(translated(refusal("VcpuLimitExceeded", message, "RunInstances"), REGION))
    denied = provider_error(
        form.format("UnauthorizedOperation", "You are not authorized to perform this operation."), REGION
    )
    assert "(UnauthorizedOperation) when calling the RunInstances operation: " in str(denied)
    assert provider_error("timeout while waiting for state to become 'running'", REGION) is None
