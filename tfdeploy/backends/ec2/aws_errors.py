"""AWS's errors about credentials and connections, as sentences."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)

from ...errors import SpecError, Unreachable

_REMEDY = "Run `aws configure`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."

_THROTTLED = ("RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException", "SlowDown")
"""https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html"""

DENIED = ("AccessDenied", "AccessDeniedException")
NO_ACCESS = (
    "AuthFailure",
    "UnauthorizedOperation",
    *DENIED,
    "ExpiredToken",
    "RequestExpired",
    "InvalidClientTokenId",
)


def refuse_no_region(region: str) -> None:
    """Check that a region is set.

    Raises:
        SpecError: it is empty.
    """
    if not region:
        raise _no_region()


def _no_region() -> SpecError:
    return SpecError("region", "is not set", "Run `pulumi config set aws:region us-west-2`, or set AWS_REGION.")


@contextmanager
def aws_errors(region: str) -> Iterator[None]:
    """Translate AWS's errors about credentials and connections; other errors of a call (`ClientError`) pass.

    Raises:
        SpecError: no credentials, or no permission.
        Unreachable: AWS does not respond.
    """
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise SpecError("AWS", f"no credentials were found ({error})", _REMEDY) from None
    except ProfileNotFound as error:
        raise SpecError("AWS", str(error), "Correct aws:profile, or AWS_PROFILE.") from None
    except NoRegionError:
        raise _no_region() from None
    except ClientError as error:
        code = error_code(error)
        if code not in NO_ACCESS:
            raise
        wrong = f"access denied in {region}: {error_message(error)} ({code})"
        raise SpecError("AWS", wrong, "Log in again, or ask for the missing permission.") from None
    except BotoCoreError as error:
        raise Unreachable(f"AWS does not respond in {region} ({error})") from None


def error_code(error: ClientError) -> str:
    """AWS's code of an error, such as `AccessDenied`."""
    return str(error.response["Error"]["Code"])


def is_throttled(error: ClientError) -> bool:
    """True where AWS asks to repeat the call later."""
    return error_code(error) in _THROTTLED


def error_message(error: ClientError) -> str:
    """AWS's message of an error."""
    return str(error.response["Error"].get("Message") or error)
