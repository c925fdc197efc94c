"""AWS's errors as sentences, each with a remedy, by the table of `errors.toml`.

`Unreachable` is an error only where nothing responded: a login, a clock, a region or a configuration that cannot be used does not
show that a cluster no longer exists.
"""

import re
import tomllib
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError, ProxyConnectionError, WaiterError
from botocore.loaders import Loader
from botocore.parsers import ResponseParserError
from botocore.regions import EndpointResolver

from ....errors import BackendError, SpecError, TfdeployError, Unreachable
from . import settings

_LONGEST_DETAIL = 600
_ENCODED = re.compile(r"\s*Encoded authorization failure message: *\S+")
_VALUE = re.compile("^Invalid|Malformed|^Validation")
_TUNNEL = re.compile(r"Tunnel connection failed: [^'\")]*")
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
    """Errors that have one sentence and one remedy: a row of `errors.toml`.

    Fields of the texts: `of` (" of profile ml"), `at` (" in us-west-2"), `region`, `detail` (AWS's message with its code), `operation`,
    `login` (how to log in again).
    """

    kind: Kind
    wrong: str
    remedy: str = "{login}"
    name: str = ""
    """The name of a row that `_row` or `_in_context` chooses."""
    exceptions: str = ""
    """Names of classes, separated by spaces; a class that is in no row has the row of its nearest base class."""
    codes: str = ""
    pattern: str = ""
    """A regular expression for codes that are in no row; the first row that matches counts."""
    statuses: Sequence[int] = ()
    """HTTP statuses of codes that match no pattern. S3 has nothing else in the response to a HEAD."""
    when: str = ""
    """A regular expression that the message must match. Such a row counts before the one without."""
    where: str = "AWS"


class AwsRefusal(SpecError):
    """AWS, or boto3 before it asked AWS, refused a call; the same call will not succeed later."""

    def __init__(self, row: ErrorRow, wrong: str, remedy: str) -> None:
        super().__init__(row.where, wrong, remedy)
        self.kind = row.kind
        self.is_not_set_up = row.name in ("no credentials", "no region")
        """True where this computer has no settings for AWS."""


class AwsFailure(BackendError):
    """AWS did not perform a call; the same call may succeed later."""

    def __init__(self, row: ErrorRow, wrong: str, remedy: str) -> None:
        super().__init__(f"{wrong}. {remedy.rstrip('.')}")
        self.kind, self.wrong, self.remedy = row.kind, wrong, remedy

    @property
    def is_throttled(self) -> bool:
        """True where AWS asks to repeat the call later."""
        return self.kind is Kind.THROTTLING


class AwsUnreachable(AwsFailure, Unreachable):
    """Nothing responded to a call of AWS."""


_CLASSES = {
    Kind.UNREACHABLE: AwsUnreachable,
    Kind.THROTTLING: AwsFailure,
    Kind.CONFLICT: AwsFailure,
    Kind.FAILURE: AwsFailure,
}


@cache
def table() -> Sequence[ErrorRow]:
    """All rows."""
    data = tomllib.loads(files(__package__).joinpath("errors.toml").read_text(encoding="utf-8"))
    return [ErrorRow(kind, **row) for kind in Kind for row in data[kind.value]]


def _named(name: str) -> ErrorRow:
    return next(row for row in table() if row.name == name)


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
    row = _in_context(_row(error), error, region)
    wrong, remedy = _texts(row, error, region)
    return _CLASSES.get(row.kind, AwsRefusal)(row, wrong, remedy)


def provider_error(text: str, region: str) -> TfdeployError | None:
    """AWS's error in a message of Pulumi's AWS provider; None where it has none."""
    match = _OF_PROVIDER.search(text)
    if match is None:
        return None
    code, message = match["code"] or match["code2"], match["message"] or match["message2"]
    operation = match["operation"] or match["operation2"] or ""
    return translated(ClientError({"Error": {"Code": code, "Message": message}}, operation), region)


def kind_of(error: ClientError) -> Kind:
    """What an error is about."""
    return _row(error).kind


def error_code(error: ClientError) -> str:
    """AWS's code of an error, such as `AccessDenied`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def error_message(error: ClientError) -> str:
    """AWS's message of an error."""
    return str(error.response.get("Error", {}).get("Message") or error)


def _row(error: Exception) -> ErrorRow:
    text = _text(error)
    if isinstance(error, ClientError):
        if not error_code(error):
            return _named("foreign")
        code = re.sub(r"^(Client|Server)\.", "", error_code(error))
        status = code if code.isdecimal() else error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return (
            _first(lambda row: code in row.codes.split(), text)
            or _first(lambda row: bool(row.pattern and re.search(row.pattern, code)), text)
            or _first(lambda row: int(status) in row.statuses, text)
            or _named("other")
        )
    names = [base.__name__ for base in type(error).__mro__]
    rows = (_first(lambda row, name=name: name in row.exceptions.split(), text) for name in names)  # type: ignore[misc]
    return next(filter(None, rows), _named("other"))


def _first(names_it: Callable[[ErrorRow], bool], text: str) -> ErrorRow | None:
    """The row of an error: one that also fits its message, else the one for any message."""
    rows = [row for row in table() if names_it(row) and re.search(row.when, text)]
    return min(rows, key=lambda row: not row.when, default=None)


def _in_context(row: ErrorRow, error: Exception, region: str) -> ErrorRow:
    """The row; where the name of the region is wrong, nothing responds either, but that is another error."""
    is_wrong = region and region not in _regions() and region in str(error)
    return _named("region") if row.kind is Kind.UNREACHABLE and is_wrong else row


@cache
def _regions() -> tuple[str, ...]:
    """The regions of all partitions, by botocore's data: no file of the user is read."""
    resolver = EndpointResolver(Loader().load_data("endpoints"))
    names = resolver.get_available_partitions()
    return tuple(region for name in names for region in resolver.get_available_endpoints("ec2", name))


def _text(error: Exception) -> str:
    """The whole message of an error."""
    if isinstance(error, ClientError):
        return error_message(error)
    if isinstance(error, ProxyConnectionError) and (reason := _TUNNEL.search(str(error.kwargs.get("error")))):
        return f"{error}: {reason[0]}"
    return str(error)


def _detail(error: Exception) -> str:
    """The message of an error in one line, with AWS's code."""
    text = " ".join(_ENCODED.sub("", _text(error)).split()).rstrip(".")
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        text = f"{error_code(error)}: {text}" if error_code(error) else f"HTTP status {status}"
    elif not isinstance(error, (BotoCoreError, Boto3Error)):
        text = f"{type(error).__name__}: {text}".removesuffix(": ")
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}…"


def _texts(row: ErrorRow, error: Exception, region: str) -> tuple[str, str]:
    """The sentence and the remedy."""
    title = settings.title()
    values = {
        "of": f" of {title}" if title else "",
        "at": f" in {region}" if region else "",
        "region": region or "this region",
        "detail": _detail(error),
        "operation": error.operation_name if isinstance(error, ClientError) else "this",
        "login": settings.remedy(),
    }
    return row.wrong.format_map(values), row.remedy.format_map(values)
