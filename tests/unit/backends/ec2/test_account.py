"""Which account is asked: by the stack's configuration in programs and providers, by what an update stored in the command."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from moto.core.responses import BaseResponse
from pulumi.dynamic import ConfigureRequest
from pulumi.dynamic.config import Config
from pulumi.runtime import set_all_config

from tests.clusters import ID, cluster_ref
from tests.unit.backends.ec2.moto_account import moto_account
from tests.unit.cases import spec
from tfdeploy.backends import stack_config
from tfdeploy.backends.base import ClusterRef, DependencyRequest
from tfdeploy.backends.ec2 import record_bucket
from tfdeploy.backends.ec2.aws import account, settings
from tfdeploy.backends.ec2.backend import BACKEND
from tfdeploy.backends.ec2.machine import ssh
from tfdeploy.backends.ec2.machine.machine_provider import Ec2MachineProvider
from tfdeploy.backends.ec2.planner import Ec2Planner
from tfdeploy.errors import SpecError
from tfdeploy.identity import with_format
from tfdeploy.resources import CleanupProvider

REGION, ACCOUNT, OTHER, THIRD = "eu-west-1", "123456789012", "210987654321", "321098765432"
ASKED = spec(backend="ec2", command=["python", "x"], workers=1, ec2={"instance_type": "m7i.large"})
CLUSTER = cluster_ref("ec2", ssh.home(REGION, f"mnist-{ID}"))
WHO_ONE_IS = {("STS", "GetCallerIdentity")}


@pytest.fixture(autouse=True)
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    found: list[tuple[str, str]] = []
    original = BaseResponse.call_action

    def call_action(response: Any) -> Any:
        found.append((type(response).__module__.split(".")[1].upper(), response._get_action()))
        return original(response)

    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    profiles = tmp_path / "config"
    profiles.write_text(
        "[profile ml]\nregion = eu-central-1\naws_access_key_id = AKIAUNIT\naws_secret_access_key = x\n"
        f"[profile assumed]\nrole_arn = arn:aws:iam::{OTHER}:role/deploy\nsource_profile = ml\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profiles))
    with moto_account(tmp_path / "state", monkeypatch), patch.object(BaseResponse, "call_action", call_action):
        yield found
    set_all_config({})
    stack_config._of_provider.clear()


def configure(**values: Any) -> None:
    """As `pulumi config set aws:…` does, for a program."""
    plain = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    set_all_config({f"aws:{name}": value for name, value in plain.items()})


@pytest.mark.parametrize("values", [{"allowedAccountIds": [OTHER]}, {"forbiddenAccountIds": [ACCOUNT]}])
def test_an_account_that_is_not_allowed_is_asked_who_one_is_and_nothing_else(
    values: dict[str, Any], calls: list[tuple[str, str]]
) -> None:
    (name,) = values
    problem = f"; allowed: {OTHER}" if name == "allowedAccountIds" else ", which is forbidden"
    configure(region=REGION, profile="ml", **values)
    with pytest.raises(SpecError) as error:
        account.connect(ASKED, None)
    assert str(error.value) == (
        f"configuration aws:{name}: the credentials (by profile ml) are of the account {ACCOUNT}{problem}. "
        "Set aws:profile, or AWS_PROFILE, to another login, or correct the list."
    )
    for service in ("ec2", "s3", "iam"):
        with pytest.raises(SpecError):
            account.client(service, REGION)
    assert set(calls) == WHO_ONE_IS


def test_an_allowed_account_is_used(calls: list[tuple[str, str]]) -> None:
    configure(region=REGION, allowedAccountIds=[ACCOUNT], forbiddenAccountIds=[OTHER])
    assert account.connect(ASKED, None) == REGION
    assert set(calls) == WHO_ONE_IS
    account.client("ec2", REGION).describe_vpcs()
    boto3.client("iam", region_name=REGION).create_account_alias(AccountAlias="team-ml")
    assert account.plan_line(REGION) == f"AWS account {ACCOUNT} (team-ml) in {REGION}"


def test_a_profile_gives_credentials_and_region(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(profile="ml")
    assert account.connect(ASKED, None) == "eu-central-1"
    credentials = account._session("ml", "").get_credentials()
    assert credentials.access_key == "AKIAUNIT", "a profile that the stack names wins over keys of the environment"
    configure(profile="ml", region=REGION)
    assert account.connect(ASKED, None) == REGION
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    account.forget()
    configure(profile="ml")
    assert account.connect(ASKED, None) == "eu-west-2"


@pytest.mark.parametrize(
    "own",
    [
        {"accessKey": "AKIASTACK"},
        {"assumeRoles": [{"roleArn": f"arn:aws:iam::{THIRD}:role/deploy"}]},
        {"assumeRole": {"roleArn": f"arn:aws:iam::{THIRD}:role/deploy"}},
        {"assumeRoleWithWebIdentity": {"roleArn": f"arn:aws:iam::{THIRD}:role/deploy"}},
    ],
)
def test_with_keys_or_roles_of_the_stack_the_profile_of_the_environment_is_used(
    own: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_PROFILE", "assumed")
    configure(region=REGION, profile="ml", **own)
    account.connect(ASKED, None)
    assert account.account_id(REGION) == OTHER


def test_a_dynamic_provider_asks_by_the_configuration_that_pulumi_gives_it() -> None:
    values = {"aws:region": REGION, "aws:profile": "assumed", "aws:allowedAccountIds": f'["{OTHER}"]'}
    stack_config.StackProvider().configure(ConfigureRequest(config=Config(values, "project")))
    assert account.account_id(REGION) == OTHER
    assert settings.current().allowed_accounts == (OTHER,)


def stored() -> None:
    """What an update of the stack leaves on this computer; then the process is the command's."""
    configure(region=REGION, profile="assumed", secretKey="canary", token="canary")
    account.connect(ASKED, None)
    account.store(CLUSTER)
    set_all_config({})
    account.forget()


def test_the_command_asks_the_account_of_the_last_update_and_no_key_is_stored() -> None:
    stored()
    file = ssh.folder(CLUSTER) / "aws.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "canary" not in file.read_text()
    assert account.account_id(REGION) == ACCOUNT
    with account.of(CLUSTER):
        assert account.account_id(REGION) == OTHER
        account.client("ec2", REGION).describe_vpcs()
    with account.at(CLUSTER["home"]) as region:
        assert (region, account.account_id(REGION)) == (REGION, OTHER)
    with account.at(f"assumed@{REGION}") as region:
        assert (region, account.account_id(REGION)) == (REGION, OTHER)
        account.remember("ec2://eu-west-1/found-x")
    with account.of(cluster_ref("ec2", "ec2://eu-west-1/found-x")):
        assert account.account_id(REGION) == OTHER


def test_a_destroy_or_refresh_with_credentials_of_another_account_is_refused(
    calls: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored()
    configure(region=REGION, profile="ml")
    stack_config.StackProvider().configure(
        ConfigureRequest(config=Config({"aws:region": REGION, "aws:profile": "ml"}, "project"))
    )
    calls.clear()
    props: Any = {"cluster": CLUSTER}
    for call in (
        lambda: BACKEND.runner.run_is_current(props),
        lambda: BACKEND.runner.stop_run(props),
        lambda: BACKEND.runner.delete_all(CLUSTER, "", {"volumes": False, "record": False}),
    ):
        with pytest.raises(SpecError) as error:
            call()
        assert str(error.value) == (
            f"mnist-{ID}: AWS: the cluster is in the account {OTHER}, but the credentials are of {ACCOUNT}. "
            "Set AWS_PROFILE, or aws:profile, to a login of that account, for every command. If it no longer exists, "
            "`TFDEPLOY_DELETE_UNREACHABLE=1 pulumi destroy` removes the cluster from the state only."
        )
    assert set(calls) == WHO_ONE_IS
    monkeypatch.setenv("TFDEPLOY_DELETE_UNREACHABLE", "1")
    account.verify(CLUSTER)


def test_a_destroy_of_another_account_is_refused_by_the_state_alone(
    calls: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another computer, and after an update that was interrupted early, there is no `aws.json`."""
    provider = CleanupProvider()
    provider.configure(ConfigureRequest(config=Config({"aws:region": REGION, "aws:profile": "ml"}, "project")))
    deleted: list[ClusterRef] = []

    def delete_all(_: Any, cluster: ClusterRef, *__: Any) -> str:
        deleted.append(cluster)
        return ""

    monkeypatch.setattr(type(BACKEND.runner), "delete_all", delete_all)
    props: dict[str, Any] = {
        "cluster": CLUSTER,
        "place": {"id": OTHER, "name": ""},
        "token": "",
        "retain": {"volumes": False, "record": False},
        **with_format({}),
    }
    with pytest.raises(SpecError, match=f"^mnist-{ID}: AWS: .*{OTHER}, but the credentials are of {ACCOUNT}") as error:
        provider.delete("mnist", props)
    assert "TFDEPLOY_DELETE_UNREACHABLE=1 pulumi destroy" in str(error.value)
    assert (deleted, set(calls)) == ([], WHO_ONE_IS)
    provider.delete("mnist", {**props, "place": {"id": ACCOUNT, "name": ""}})
    monkeypatch.setenv("TFDEPLOY_DELETE_UNREACHABLE", "1")
    provider.delete("mnist", props)
    assert deleted == [CLUSTER, CLUSTER]


def test_the_account_is_stored_before_anything_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Exception):
        pass

    class NoMachines(Ec2MachineProvider):
        def register(self, request: DependencyRequest[Any]) -> Any:
            raise Interrupted

    for module, name in ((ssh, "store"), (record_bucket, "download")):
        monkeypatch.setattr(module, name, lambda *_: None)
    configure(region=REGION)
    account.connect(ASKED, None)
    request: Any = SimpleNamespace(cluster=CLUSTER, spec=ASKED, plan=None)
    with pytest.raises(Interrupted):
        Ec2Planner(NoMachines()).register_dependencies(request)
    assert json.loads((ssh.folder(CLUSTER) / "aws.json").read_text())["account"] == ACCOUNT


def test_a_profile_with_a_space_is_one_argument_of_the_command() -> None:
    configure(region=REGION, profile="my ml 100%")
    settings.use_stack()
    ssh.write(CLUSTER, ssh.SshHosts("m", "me", {"m": ssh.Host("i-1", "i-1", "ssh-ed25519 AAAA")}))
    assert " --profile 'my ml 100%%' --document-name " in ssh.config_file(CLUSTER).read_text()
