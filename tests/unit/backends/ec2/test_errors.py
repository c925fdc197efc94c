"""The table of AWS's errors: each exception and each code is of one kind, which has one remedy. Through real sessions of boto3:
settings that cannot be used, and a server that responds as AWS's services do."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3.exceptions
import botocore.exceptions as exceptions
import pytest
from botocore.exceptions import ClientError
from pulumi.runtime import set_all_config

from tests.clusters import ID, cluster_ref
from tests.unit.cases import spec
from tfdeploy.backends import stack_config
from tfdeploy.backends.base import FAIL
from tfdeploy.backends.ec2.aws import account
from tfdeploy.backends.ec2.aws.errors import TABLE, Kind, aws_errors, kind_of, provider_error, translated
from tfdeploy.backends.ec2.backend import BACKEND
from tfdeploy.backends.ec2.discover import discover_clusters, health
from tfdeploy.backends.ec2.machine import ssh
from tfdeploy.backends.ec2.machine.machine_provider import Ec2MachineProvider
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


def said(error: Exception, region: str = REGION) -> str:
    return str(translated(error, region))


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
    assert str(error) == said(refusal("VcpuLimitExceeded", message, "RunInstances"))
    denied = provider_error(
        form.format("UnauthorizedOperation", "You are not authorized to perform this operation."), REGION
    )
    assert "(UnauthorizedOperation) when calling the RunInstances operation: " in str(denied)
    assert provider_error("timeout while waiting for state to become 'running'", REGION) is None


ASKED = spec(backend="ec2", command=["python", "x"], workers=1, ec2={"instance_type": "m7i.large"})
CLUSTER = cluster_ref("ec2", ssh.home(REGION, f"mnist-{ID}"))
START = "https://corp.awsapps.com/start"
SESSION = f"[sso-session corp]\nsso_region = us-west-2\nsso_start_url = {START}\nsso_registration_scopes = sso:account:access\n"
ROLE = "sso_account_id = 123456789012\nsso_role_name = ml\nregion = us-west-2\n"
SSO = f"[profile ml]\nsso_session = corp\n{ROLE}{SESSION}"
KEYS = "aws_access_key_id = AKIAUNIT\naws_secret_access_key = x\n"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No setting of this machine, and nothing that this process has asked before."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr("botocore.tokens.SSOTokenProvider._SSO_TOKEN_CACHE_DIR", str(tmp_path / "sso"))
    account.forget()
    yield
    account.forget()
    set_all_config({})
    stack_config._of_provider.clear()


def refused(**config: str) -> TfdeployError:
    """What a program with this configuration is refused with."""
    set_all_config({f"aws:{name}": value for name, value in config.items()})
    with pytest.raises(TfdeployError) as error:
        account.connect(ASKED, None)
    return error.value


IN_REGION = {"region": REGION}
NO_TOKEN = (
    "AWS: Error loading SSO Token: Token for corp does not exist (us-west-2, profile ml). "
    "Run `aws sso login --profile ml`, `aws login --profile ml` or "
)
NO_PROFILE = (
    "AWS: The config profile (none) could not be found (us-west-2, profile none). Check the network, "
    "the name of the region, the profile (aws:profile, AWS_PROFILE, ~/.aws/config) with its credential_process or token file, and "
    "HTTPS_PROXY, AWS_ENDPOINT_URL, AWS_CA_BUNDLE and the like."
)
NO_SCHEME = "ValueError: Invalid endpoint: localhost (us-west-2). Check the network"
LINE_END = {"AWS_ACCESS_KEY_ID": "AKIA\n", "AWS_SECRET_ACCESS_KEY": "x", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
INVALID = (
    "AWS: An HTTP Client raised an unhandled exception: Invalid header value (us-west-2, AWS_ACCESS_KEY_ID). Run `aws"
)
UNUSABLE: dict[str, tuple[str, Mapping[str, str], Mapping[str, str], Kind, str]] = {
    "an SSO session without a token": (SSO, {"profile": "ml"}, {}, Kind.LOGIN, NO_TOKEN),
    "no credentials": ("", IN_REGION, {}, Kind.LOGIN, "Unable to locate credentials (us-west-2). Run `aws"),
    "a profile that does not exist": ("", {"profile": "none", **IN_REGION}, {}, Kind.CONFIGURATION, NO_PROFILE),
    "no scheme": (f"[default]\n{KEYS}", IN_REGION, {"AWS_ENDPOINT_URL": "localhost"}, Kind.CONFIGURATION, NO_SCHEME),
    "keys with a line end": ("", IN_REGION, LINE_END, Kind.LOGIN, INVALID),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_settings_that_cannot_be_used_are_a_sentence_and_never_unreachable(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, config, environment, kind, expected = UNUSABLE[name]
    (tmp_path / "config").write_text(text)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    error = refused(**config)
    assert isinstance(error, SpecError)
    assert (getattr(error, "kind", None), expected in str(error)) == (kind, True), str(error)


def test_where_nothing_responds_aws_is_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(f"[default]\n{KEYS}")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    error = refused(region=REGION)
    assert isinstance(error, Unreachable)
    assert str(error).startswith("AWS: Could not connect to the endpoint URL: ")
    assert "Check the network" in str(error)


def test_an_expired_login_ends_neither_a_destroy_nor_the_command_with_the_hint_to_forget_machines(
    tmp_path: Path,
) -> None:
    (tmp_path / "config").write_text(SSO)
    set_all_config({"aws:profile": "ml", "aws:region": REGION})
    refused(profile="ml", region=REGION)
    with patch.object(account, "account_id", return_value="123456789012"):
        account.store(CLUSTER)
    props: Any = {"cluster": CLUSTER}
    calls: list[Callable[[], object]] = [
        lambda: BACKEND.runner.run_is_current(props),
        lambda: BACKEND.runner.stop_run(props),
        lambda: BACKEND.runner.delete_all(CLUSTER, "", {"volumes": False, "record": False}),
        lambda: account.connect(ASKED, None),
        lambda: discover_clusters(f"ml@{REGION}"),
    ]
    for call in calls:
        with pytest.raises(SpecError, match=r"\. Run `aws sso login --profile ml`, .*AWS_SESSION_TOKEN\.$") as error:
            call()
        assert "TFDEPLOY_DELETE_UNREACHABLE" not in str(error.value)


def test_doctor_and_status_say_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(SSO)
    (check,) = (check for check in health(f"ml@{REGION}") if check.what == "aws credentials")
    assert (check.state, check.remedy.partition(",")[0]) == (FAIL, "Run `aws sso login --profile ml`")
    with account.at(f"ml@{REGION}"):
        seen = Ec2MachineProvider().observe(CLUSTER)
    assert (seen.others, ["aws sso login --profile ml" in text for text in seen.problems]) == ("unknown", [True])


def test_a_computer_without_settings_for_aws_has_no_clusters_and_one_with_an_expired_login_cannot_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert discover_clusters() == []
    monkeypatch.setenv("AWS_REGION", REGION)
    assert discover_clusters() == []
    with pytest.raises(SpecError, match="Unable to locate credentials"):
        discover_clusters(REGION)
    (tmp_path / "config").write_text(SSO)
    monkeypatch.setenv("AWS_PROFILE", "ml")
    account.forget()
    with pytest.raises(SpecError, match="aws sso login --profile ml"):
        discover_clusters()
