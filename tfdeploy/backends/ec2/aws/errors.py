"""AWS's errors: each is of one kind, by the table `TABLE`, and has AWS's own words, where, and the remedy of its kind.

`Unreachable` is an error only where nothing responded: a login, a clock, a region or a configuration that cannot be used does not
show that a cluster no longer exists.
"""

import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, WaiterError
from botocore.parsers import ResponseParserError

from ....errors import BackendError, SpecError, TfdeployError, Unreachable
from . import settings

_LONGEST_DETAIL = 600
_ENCODED = re.compile(r"\s*Encoded authorization failure message: *\S+")
_HEADER = re.compile("(Invalid header value|[Ii]llegal header).*", re.DOTALL)
"""What follows is a key with a character that no key has, such as a line end."""

_VALUE = re.compile("^Invalid|Malformed|^Validation")
_OF_PROVIDER = re.compile(
    r"(?:operation error \S+ (?P<operation>\w+), .*?)?api error (?P<code>[\w.]+): (?P<message>.*)"
    r"|An error occurred \((?P<code2>[\w.]+)\) when calling the (?P<operation2>\w+) operation(?: \([^)]*\))?: (?P<message2>.*)"
)
"""AWS's error in a message of Pulumi's AWS provider, and in one of boto3."""


class Kind(Enum):
    """What an error of AWS is about. It decides the class of the exception, and whether the call is repeated."""

    LOGIN = "login"
    CLOCK = "clock"
    PERMISSION = "permission"
    REGION = "region"
    CONFIGURATION = "configuration"
    THROTTLING = "throttling"
    CAPACITY = "capacity"
    QUOTA = "quota"
    CONFLICT = "conflict"
    """Something is in use, or is changed by another call at the same time."""
    GONE = "gone"
    FAILURE = "failure"
    """AWS responded that it failed itself, or its response did not arrive completely."""
    UNREACHABLE = "unreachable"
    """Nothing responded."""
    REFUSED = "refused"
    """A value that AWS does not accept, or an unknown code."""


@dataclass(frozen=True)
class ErrorRow:
    """The errors of one kind. The first row counts that has a message, else a code, else a status."""

    remedy: str
    """With the field `profile` (" --profile ml")."""
    codes: str = ""
    """Codes, as regular expressions."""
    statuses: tuple[int, ...] = ()
    """HTTP statuses of other codes. S3 has nothing else in the response to a HEAD."""
    exceptions: str = ""
    """Names of classes, and so of their subclasses."""
    message: str = ""
    """A regular expression for messages: one that matches has this kind, whatever its code or class."""


_LOG_IN = (
    "Run `aws sso login{profile}`, `aws login{profile}` or `aws configure{profile}`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID, "
    "AWS_SECRET_ACCESS_KEY and, for temporary credentials, AWS_SESSION_TOKEN."
)
_LATER = "Run the command again later; https://health.aws.amazon.com has AWS's own problems."
_CORRECT = "Correct the id, name or value. If tfdeploy created it and it was deleted, run `pulumi up --refresh`."
_SETTINGS = (
    "Check the network, the name of the region, the profile (aws:profile, AWS_PROFILE, ~/.aws/config) with its credential_process or "
    "token file, and HTTPS_PROXY, AWS_ENDPOINT_URL, AWS_CA_BUNDLE and the like."
)
_MORE = (
    "Choose another ec2.instance_type or ec2.subnet_id, request a larger quota "
    "(https://console.aws.amazon.com/servicequotas/home), or run `pulumi up` again later."
)

TABLE: Mapping[Kind, ErrorRow] = {
    Kind.LOGIN: ErrorRow(
        _LOG_IN,
        codes="400 AuthFailure CredentialsNotSupported Expired(Token|TradeInToken)(Exception)? IDPRejectedClaim "
        "IncompleteSignature(Exception)? InvalidAccessKeyId InvalidAuthenticationCode InvalidClientException InvalidClientTokenId "
        "InvalidGrantException InvalidIdentityToken InvalidSecurity InvalidSignatureException InvalidToken "
        "MissingAuthenticationToken(Exception)? MissingSecurityHeader NotSignedUp RequestExpired SignatureDoesNotMatch "
        "TokenRefreshRequired Unauthorized(Client)?Exception UnrecognizedClientException",
        statuses=(401,),
        exceptions="CredentialRetrievalError EOFError LoginError LoginRefreshRequired MetadataRetrievalError NoAuthTokenError "
        "NoCredentialsError RefreshWithMFAUnsupportedError SSOError TokenRetrievalError UnauthorizedSSOTokenError",
        message=_HEADER.pattern,
    ),
    Kind.CLOCK: ErrorRow(
        "Set the clock: `timedatectl set-ntp true`, or that of the virtual machine or container host.",
        codes="RequestInTheFuture RequestTimeTooSkewed",
        message="Signature expired|[Ss]ignature not yet current|timestamp.* in the future|is not yet valid",
    ),
    Kind.PERMISSION: ErrorRow(
        "Ask those who administer the account; docs/iam-policy.json has all permissions that are needed.",
        codes="AccountProblem AllAccessDisabled Blocked Forbidden(Exception)? InvalidPayer PendingVerification "
        "OutboundWebIdentityFederationDisabledException SubscriptionRequiredException "
        r".*AccessDenied.* Unauthorized.* .*NotAuthorized.* KMS\..*",
        statuses=(403,),
        exceptions="LoginInsufficientPermissions",
        message="AWS Marketplace product",
    ),
    Kind.REGION: ErrorRow(
        "Run `pulumi config set aws:region us-west-2`, or set ec2.region or AWS_REGION, to a region that the account has enabled.",
        codes="AuthorizationHeaderMalformed InvalidRegion InvalidRequestRegionException (Permanent|Temporary)?Redirect "
        "UnsupportedRegion .*RegionDisabled.* .*OptIn.* .*LocationConstraint.*",
        statuses=(301, 307, 308),
        exceptions="BaseEndpointResolverError InvalidRegionError NoRegionError ServiceNotInRegionError UnknownRegionError",
    ),
    Kind.THROTTLING: ErrorRow(
        _LATER,
        codes="BandwidthLimitExceeded PriorRequestNotComplete ProvisionedThroughputExceededException TransactionInProgressException "
        ".*(Throttl|TooManyRequests|SlowDown|RequestLimitExceeded|TooManyUpdates).*",
        statuses=(429, 509),
        exceptions="CapacityNotAvailableError",
    ),
    Kind.CAPACITY: ErrorRow(
        _MORE,
        codes="(Insufficient|No)FreeAddressesInSubnet SpotMaxPriceTooLow UnfulfillableCapacity Unsupported(AvailabilityZone)? "
        "Insufficient.*Capacity.* .*CapacityExceeded",
    ),
    Kind.QUOTA: ErrorRow(
        _MORE,
        codes=".*(Limit|Count|Quota)Exceeded(Exception|Error)? TooManyBuckets.* .*PermissionLimit",
    ),
    Kind.CONFLICT: ErrorRow(
        _LATER,
        codes="BucketNotEmpty DependencyViolation EntityTemporarilyUnmodifiable OperationAborted .*InUse(Exception|Error)? "
        "Incorrect.*State Concurrent.* .*Conflict(Exception|Error)?",
    ),
    Kind.GONE: ErrorRow(
        _CORRECT,
        codes=r".*(NotFound|DoesNotExist)(Exception|Error)? NoSuch.* .*\.Unknown Invalid.*\.Unavailable",
        statuses=(404, 410),
    ),
    Kind.FAILURE: ErrorRow(
        _LATER,
        codes="IDPCommunicationError ServiceFailure Internal.* .*(Unavailable|Timeout)(Exception|Error)? .*ServiceException",
        statuses=(500, 502, 503, 504),
        exceptions="AwsChunkedWrapperError ChecksumError FlexibleChecksumError IncompleteReadError ResponseStreamingError WaiterError",
    ),
    Kind.UNREACHABLE: ErrorRow(
        _SETTINGS,
        exceptions="ConnectionError ConnectionClosedError ProxyConnectionError ReadTimeoutError",
    ),
    Kind.REFUSED: ErrorRow(_CORRECT, exceptions="Boto3Error ParamValidationError"),
    # All other exceptions: those of reading a login, a file or a response.
    Kind.CONFIGURATION: ErrorRow(_SETTINGS, exceptions="SSLError Exception"),
}
"""Codes and their meaning: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html,
and the error shapes of botocore's models of EFS, IAM, S3, SSM, STS, IAM Identity Center (SSO, SSO OIDC) and Service Quotas."""


class AwsRefusal(SpecError):
    """AWS, or boto3 before it asked AWS, refused a call; the same call will not succeed later."""

    def __init__(self, kind: Kind, wrong: str, remedy: str, is_not_set_up: bool = False) -> None:
        super().__init__("AWS", wrong, remedy)
        self.kind = kind
        self.is_not_set_up = is_not_set_up
        """True where this computer has no settings for AWS."""


class AwsFailure(BackendError):
    """AWS did not perform a call; the same call may succeed later."""

    def __init__(self, kind: Kind, wrong: str, remedy: str) -> None:
        super().__init__(f"AWS: {wrong}. {remedy.rstrip('.')}")
        self.kind, self.wrong, self.remedy = kind, wrong, remedy


class AwsUnreachable(AwsFailure, Unreachable):
    """Nothing responded to a call of AWS."""


def refuse_no_region(region: str) -> None:
    """Check that a region is set.

    Raises:
        SpecError: it is empty.
    """
    if not region:
        raise translated(NoRegionError(), region)


@contextmanager
def aws_errors(region: str) -> Iterator[None]:
    """Translate all errors of AWS and boto3. What handles a code itself (`kind_of`) does so within.

    Raises:
        SpecError: the user must change something: the login, the clock, a permission, a value.
        BackendError: the same call may succeed later.
        Unreachable: AWS does not respond.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, TfdeployError) or not _is_of_aws(error):
            raise
        raise translated(error, region) from None


@contextmanager
def value_errors(region: str, where: str, wrong: str, remedy: str) -> Iterator[None]:
    """As `aws_errors`; where AWS refuses the value of an argument, the error names the argument.

    Raises:
        SpecError: also where the value does not exist.
        BackendError, Unreachable: as for `aws_errors`.
    """
    with aws_errors(region):
        try:
            yield
        except ClientError as error:
            kind = kind_of(error)
            if kind is not Kind.GONE and not (kind is Kind.REFUSED and _VALUE.search(error_code(error))):
                raise
            raise SpecError(where, f"{wrong} ({error_message(error)})", remedy) from None


def _is_of_aws(error: Exception) -> bool:
    """botocore lets some errors through: those of reading a login, a file or a response."""
    if isinstance(error, (BotoCoreError, ClientError, Boto3Error, ResponseParserError)):
        return True
    if not isinstance(error, (OSError, ValueError, LookupError, TypeError, RuntimeError, EOFError)):
        return False
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(str(frame.f_globals.get("__name__", "")).startswith("botocore.") for frame in frames)


def translated(error: Exception, region: str) -> TfdeployError:
    """An error of AWS or boto3 as the error with its sentence and remedy."""
    if isinstance(error, WaiterError) and "Error" in error.last_response and "Max attempts" not in str(error):
        return translated(ClientError(error.last_response, error.kwargs["name"]), region)
    kind = kind_of(error)
    title = settings.title()
    place = ", ".join(filter(None, [region, title]))
    wrong = f"{_detail(error)} ({place})" if place else _detail(error)
    remedy = TABLE[kind].remedy.format(profile=f" --{title}" if title.startswith("profile ") else "")
    if kind is Kind.UNREACHABLE:
        return AwsUnreachable(kind, wrong, remedy)
    if kind in (Kind.THROTTLING, Kind.CONFLICT, Kind.FAILURE):
        return AwsFailure(kind, wrong, remedy)
    return AwsRefusal(kind, wrong, remedy, isinstance(error, (NoCredentialsError, NoRegionError)))


def provider_error(text: str, region: str) -> TfdeployError | None:
    """AWS's error in a message of Pulumi's AWS provider; None where it has none."""
    match = _OF_PROVIDER.search(text)
    if match is None:
        return None
    code, message = match["code"] or match["code2"], match["message"] or match["message2"]
    operation = match["operation"] or match["operation2"] or ""
    return translated(ClientError({"Error": {"Code": code, "Message": message}}, operation), region)


def kind_of(error: Exception) -> Kind:
    """What an error is about."""
    text = error_message(error)
    for kind, row in TABLE.items():
        if row.message and re.search(row.message, text):
            return kind
    return _kind_of_code(error) if isinstance(error, ClientError) else _kind_of_class(error)


def _kind_of_code(error: ClientError) -> Kind:
    """Without a code it was not AWS that responded."""
    code = re.sub(r"^(Client|Server)\.", "", error_code(error))
    if not code:
        return Kind.CONFIGURATION
    status = int(code if code.isdecimal() else error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    by_code = [kind for kind, row in TABLE.items() if re.fullmatch("|".join(row.codes.split()), code)]
    by_status = [kind for kind, row in TABLE.items() if status in row.statuses]
    return [*by_code, *by_status, Kind.REFUSED][0]


def _kind_of_class(error: Exception) -> Kind:
    names = (base.__name__ for base in type(error).__mro__)
    return next(kind for name in names for kind, row in TABLE.items() if name in row.exceptions.split())


def error_code(error: ClientError) -> str:
    """AWS's code of an error, such as `AccessDenied`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def error_message(error: Exception) -> str:
    """AWS's message of an error, or boto3's."""
    message = error.response.get("Error", {}).get("Message") if isinstance(error, ClientError) else ""
    return str(message or error)


def _detail(error: Exception) -> str:
    """AWS's or boto3's own words in one line, without what follows an invalid header: that may be a key."""
    text = " ".join(_ENCODED.sub("", _HEADER.sub(r"\1", str(error))).split()).rstrip(".")
    if isinstance(error, ClientError) and not error_code(error):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        text = f"something other than AWS responded: HTTP status {status}"
    elif isinstance(error, ResponseParserError):
        text = f"something other than AWS responded: {text}"
    elif not isinstance(error, (BotoCoreError, Boto3Error, ClientError)):
        text = f"{type(error).__name__}: {text}".removesuffix(": ")
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}…"
