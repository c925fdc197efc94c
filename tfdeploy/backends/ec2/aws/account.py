"""The account that a cluster is in: Pulumi's AWS provider and boto3 must both ask it, in every process. And boto3's clients: one
session for a process and its settings.

An update stores, without credentials, how it asked (`aws.json`), so that the command asks the same account.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import boto3
import pulumi
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    AssumeRoleWithWebIdentityCredentialFetcher,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from ....agent.files import write_whole
from ....errors import SpecError
from ....paths import make_private, read_json, state_folder
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import SSM
from ...base import ClusterRef
from ...record_view import DELETE_UNREACHABLE
from ..machine import ssh
from . import settings
from .errors import aws_errors, refuse_no_region
from .settings import AssumedRole, AwsSettings, Login, core_session, current, current_login

PACKAGE = "aws"
_FILE = "aws.json"
_SSM_SERVICES = {"ssm", "sts"}
"""What `aws ssm start-session` calls: the second for a profile with a role."""

_TIMEOUT_SECONDS = 20
_ENDPOINT_NAMES = {"service-quotas": "servicequotas"}
"""boto3's name of a service to Pulumi's, where they differ."""

_PAIRS, _FLAGS = ("endpoints", "proxies"), ("insecure", "fips", "dualstack")
_STORED = ("profile", "config_file", "credentials_file", "sts_region", "ca_bundle", *_PAIRS, *_FLAGS)
"""The settings that are stored beside the roles: never credentials, nor the URL of a proxy that contains them."""


class ProviderPlace(NamedTuple):
    """What an explicit provider of the program uses."""

    account: str
    region: str


_places: WeakKeyDictionary[pulumi.ProviderResource, ProviderPlace] = WeakKeyDictionary()
_discovered: dict[str, AwsSettings] = {}
"""Home of a cluster to the settings that it was discovered by."""


def client(service: str, region: str) -> Any:
    """A client of an AWS service; one for each service and region in a process.

    Raises:
        SpecError: the credentials belong to an account that is not allowed, or to another one than the cluster.
    """
    present, login = current(), current_login()
    if service != "sts":
        _refuse_account(present, login, region)
    return _client(present, service, region)


def account_id(region: str) -> str:
    """The id of the account that the credentials belong to. Nothing else is asked for it."""
    return _id_of_account(current(), region)


def _refuse_account(present: AwsSettings, login: Login, region: str) -> None:
    is_ignored = os.environ.get(DELETE_UNREACHABLE) == "1"
    if login.account and not is_ignored and _id_of_account(present, region) != login.account:
        wrong = f"the cluster is in the account {login.account}, but the credentials are of {_id_of_account(present, region)}"
        remedy = (
            "Set aws:profile, or AWS_PROFILE, to a login of that account. If it no longer exists, "
            f"`{DELETE_UNREACHABLE}=1 pulumi destroy` removes the cluster from the state only."
        )
        raise SpecError(f"{login.cluster}: AWS", wrong, remedy)
    _refuse_forbidden(present, region)


def _refuse_forbidden(present: AwsSettings, region: str) -> None:
    """Check the account of the credentials against the configuration.

    Raises:
        SpecError: it is not among `aws:allowedAccountIds`, or it is among `aws:forbiddenAccountIds`.
    """
    if not present.allowed_accounts and not present.forbidden_accounts:
        return
    present_account = _id_of_account(present, region)
    source = f" (by {present.title})" if present.title else ""
    present_title = f"the credentials{source} are of the account {present_account}"
    remedy = "Set aws:profile, or AWS_PROFILE, to another login, or correct the list."
    if present.allowed_accounts and present_account not in present.allowed_accounts:
        wrong = f"{present_title}; allowed: {', '.join(present.allowed_accounts)}"
        raise SpecError("configuration aws:allowedAccountIds", wrong, remedy)
    if present_account in present.forbidden_accounts:
        raise SpecError("configuration aws:forbiddenAccountIds", f"{present_title}, which is forbidden", remedy)


def default_region() -> str:
    """The region of the environment or of the profile; empty for none."""
    with aws_errors(""):
        return str(_session(current()).region_name or "")


def forget() -> None:
    """Forget sessions, accounts and the program's login: for another program in the same process, and for tests."""
    settings.forget()
    for cached in (_session, _client, _id_of_account):
        cached.cache_clear()


@cache
def _id_of_account(present: AwsSettings, region: str) -> str:
    with aws_errors(region):
        return str(_client(present, "sts", region).get_caller_identity()["Account"])


@cache
def _client(present: AwsSettings, service: str, region: str) -> Any:
    place = present.sts_region if service == "sts" and present.sts_region else region
    with aws_errors(region):
        return _session(present).client(service, region_name=place, **_options(present, service))


def _options(present: AwsSettings, service: str) -> dict[str, Any]:
    """The options of a client."""
    config = Config(
        connect_timeout=_TIMEOUT_SECONDS,
        read_timeout=_TIMEOUT_SECONDS,
        retries={"mode": "standard", "max_attempts": 4},
        proxies=dict(present.proxies) or None,
        use_fips_endpoint=present.fips or None,
        use_dualstack_endpoint=present.dualstack or None,
    )
    endpoint = dict(present.endpoints).get(_ENDPOINT_NAMES.get(service, service))
    verify = False if present.insecure else (present.ca_bundle or None)
    return {"config": config, "endpoint_url": endpoint, "verify": verify}


@cache
def _session(present: AwsSettings) -> boto3.Session:
    """A session with the credentials of these settings, with all roles assumed."""
    core = core_session(present)
    if present.access_key:
        core.set_credentials(present.access_key, present.secret_key, present.token or None)
    for role in (*filter(None, [present.web_identity]), *present.roles):
        _assume(core, present, role)
    # boto3 does not read AWS_REGION.
    environment = os.environ.get("AWS_REGION")
    return boto3.Session(botocore_session=core, region_name=present.region or environment or None)


def _assume(core: Any, present: AwsSettings, role: AssumedRole) -> None:
    """Have the session assume a role when its credentials are needed.

    Raises:
        NoCredentialsError: the session has none to assume it with.
    """

    def create_client(service: str, **arguments: Any) -> Any:
        region = present.sts_region or present.region or core.get_config_variable("region") or "us-east-1"
        options = _options(present, service)
        if "config" in arguments:  # a web identity's calls are not signed
            arguments["config"] = options["config"].merge(arguments["config"])
        return core.create_client(service, **{"region_name": region, **options, **arguments})

    parameters: Mapping[str, Any] = json.loads(role.parameters)
    fetcher: Any
    if role.token or role.token_file:
        loader = lambda: role.token or Path(role.token_file).expanduser().read_text()  # noqa: E731
        fetcher = AssumeRoleWithWebIdentityCredentialFetcher(create_client, loader, role.arn, parameters)
    else:
        credentials = core.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        fetcher = AssumeRoleCredentialFetcher(create_client, credentials, role.arn, parameters)
    core._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def connect(spec: ClusterSpec, provider: pulumi.ProviderResource | None) -> str:
    """Log in as the stack is configured, and return the cluster's region: the argument's, else the provider's. `provider` is the
    explicit one of the program; None for the stack's default provider. Nothing is asked but who one is.

    Raises:
        SpecError: no region is set, the account is not allowed, or the provider uses another one.
    """
    present = settings.use_stack()
    place = _place_of(spec.name, provider) if provider else None
    region = spec.ec2.region or _provider_region(place, present)
    refuse_no_region(region)
    _refuse_forbidden(present, region)
    account = account_id(region)
    if place and place.account != account:
        source = present.title or "the environment"
        wrong = f"the provider of the program uses the account {place.account}, but tfdeploy's own calls use {account} (by {source})"
        remedy = (
            "Set aws:profile or aws:assumeRoles of the stack, or AWS_PROFILE, to a login of the provider's account: the settings of "
            "an explicit provider cannot be read."
        )
        raise SpecError(f"{spec.name}: opts.provider", wrong, remedy)
    if spec.ec2.connectivity == SSM:
        _refuse_unknown_to_ssm(spec.name, present)
    return region


def _refuse_unknown_to_ssm(name: str, present: AwsSettings) -> None:
    """Check that the command `aws`, by which ssh connects, asks as this process does: it gets the profile alone.

    Raises:
        SpecError: with what the command would not know.
    """
    if present.access_key or present.roles or present.web_identity:
        wrong = f'"{SSM}" connects by the command `aws`, which gets a profile, but no keys and no roles of the stack'
        remedy = (
            "Set aws:profile to a profile that has them (role_arn, source_profile), or choose another connectivity."
        )
        raise SpecError(f"{name}: ec2.connectivity", wrong, remedy)
    services = {service for service, _ in present.endpoints}
    unknown = {
        "sharedConfigFiles": present.config_file,
        "sharedCredentialsFiles": present.credentials_file,
        "endpoints": services & _SSM_SERVICES,
        "customCaBundle": present.ca_bundle,
    }
    names = [f"aws:{setting}" for setting, value in unknown.items() if value]
    if names:
        wrong = f'"{SSM}" connects by the command `aws`, which gets a profile, but not {", ".join(names)}'
        remedy = (
            "Set AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, AWS_ENDPOINT_URL_SSM or AWS_CA_BUNDLE instead, or choose another "
            "connectivity."
        )
        raise SpecError(f"{name}: ec2.connectivity", wrong, remedy)


def _provider_region(place: ProviderPlace | None, present: AwsSettings) -> str:
    return place.region if place else present.region or default_region()


def _place_of(name: str, provider: pulumi.ProviderResource) -> ProviderPlace:
    """What the provider uses: it is asked, because its settings cannot be read.

    Raises:
        SpecError: it does not respond, or a preview cannot know it.
    """
    import pulumi_aws as aws

    if provider not in _places:
        opts = pulumi.InvokeOptions(provider=provider)
        try:
            account = aws.get_caller_identity(opts=opts).account_id
            region = aws.get_region(opts=opts).region if account else ""
        except Exception as error:  # Pulumi has no other class for it
            wrong = f"it cannot be asked for its account ({str(error).splitlines()[0]})"
            raise SpecError(f"{name}: opts.provider", wrong, "Correct the settings of the provider.") from None
        if not account:
            wrong = "its account is not known in this preview, because the provider is configured by a resource that does not exist yet"
            remedy = "Run `pulumi up --skip-preview`, or configure the provider with plain values."
            raise SpecError(f"{name}: opts.provider", wrong, remedy)
        _places[provider] = ProviderPlace(account, region)
    return _places[provider]


def region_argument(cluster: ClusterRef, provider: pulumi.ProviderResource | None) -> str | None:
    """The argument `region` of the cluster's AWS resources: None where it is the provider's."""
    region = ssh.region(cluster)
    place = _place_of(cluster["name"], provider) if provider else None
    return None if _provider_region(place, current()) == region else region


def plan_line(region: str) -> str:
    """The account, with its alias where the user may read it, for the preview."""
    source = current().title
    try:
        names = ", ".join(client("iam", region).list_account_aliases()["AccountAliases"])
    except (ClientError, BotoCoreError):
        names = ""
    return f"AWS account {account_id(region)}{f' ({names})' if names else ''} in {region}{f', by {source}' if source else ''}"


def store(cluster: ClusterRef) -> None:
    """Store how a program asks AWS about the cluster, for the command. In the command it does nothing."""
    own = settings.own()
    if own is None:
        return
    proxies = tuple((scheme, url) for scheme, url in own.proxies if "@" not in url)
    data = {
        "account": account_id(ssh.region(cluster)),
        "settings": {**{name: getattr(own, name) for name in _STORED}, "proxies": proxies},
        "roles": [asdict(replace(role, token="")) for role in own.roles],
    }
    text = json.dumps(data, indent=1)
    make_private(ssh.folder(cluster))
    path = ssh.folder(cluster) / _FILE
    if not path.exists() or path.read_text() != text:
        write_whole(path, text, 0o600)


def _stored(home: str) -> Login:
    """How an update of the cluster asked; the environment's login where none has on this computer.

    Raises:
        SpecError: the file is damaged.
    """
    folder = home.rpartition("/")[2]
    try:
        return read_json(state_folder() / ssh.SCHEME / folder / _FILE, lambda data: _login(folder, data))
    except FileNotFoundError:
        return Login(_discovered.get(home, AwsSettings()))


def _login(name: str, data: Any) -> Login:
    roles = tuple(AssumedRole(**role) for role in data["roles"])
    values: dict[str, Any] = {key: value for key, value in data["settings"].items() if key in _STORED}
    values |= {key: tuple(map(tuple, values.get(key, ()))) for key in _PAIRS}
    return Login(AwsSettings(**values, roles=roles), str(data["account"]), name)


@contextmanager
def of(cluster: ClusterRef, account: str = "") -> Iterator[None]:
    """Ask AWS about this cluster as its last update did, or, in a program or a dynamic provider, as the stack is configured. Another
    account is refused at the first call (`SpecError`): than `account`, or, where that is empty, than that of the last update."""
    login = _stored(cluster["home"])
    if account:
        login = replace(login, account=account, cluster=cluster["home"].rpartition("/")[2])
    with settings.logged_in(login):
        yield


@contextmanager
def at(place: str) -> Iterator[str]:
    """Ask AWS at a place: a cluster's home, else `REGION` or `PROFILE@REGION`. The region."""
    if place.startswith(f"{ssh.SCHEME}://"):
        with settings.logged_in(_stored(place)):
            yield place.removeprefix(f"{ssh.SCHEME}://").partition("/")[0]
        return
    profile, _, region = place.rpartition("@")
    with settings.logged_in(Login(AwsSettings(profile=profile))):
        yield region or default_region()


def remember(home: str) -> None:
    """Have the command ask about a discovered cluster by the settings of now, if no update on this computer stored others."""
    _discovered[home] = current()


def verify(cluster: ClusterRef, account: str = "") -> None:
    """Check that the credentials are of the cluster's account, before Pulumi deletes what it cannot find in another one. The account
    is that of the state, where it is given: a computer without an update of the cluster has no other.

    Raises:
        SpecError: they are of another account.
        Unreachable: AWS does not respond.
    """
    with of(cluster, account):
        client("ec2", ssh.region(cluster))
