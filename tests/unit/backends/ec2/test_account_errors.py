"""Settings that cannot be used, expired logins and a server that does not respond, through real sessions of boto3."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pulumi.runtime import set_all_config

from tests.clusters import ID, cluster_ref
from tests.unit.cases import spec
from tfdeploy.backends import stack_config
from tfdeploy.backends.base import FAIL
from tfdeploy.backends.ec2.aws import account
from tfdeploy.backends.ec2.aws.errors import Kind
from tfdeploy.backends.ec2.backend import BACKEND
from tfdeploy.backends.ec2.discover import discover_clusters, health
from tfdeploy.backends.ec2.machine import ssh
from tfdeploy.backends.ec2.machine.machine_provider import Ec2MachineProvider
from tfdeploy.errors import SpecError, TfdeployError, Unreachable

REGION = "us-west-2"
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
