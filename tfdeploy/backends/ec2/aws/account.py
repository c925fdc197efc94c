"""The account that a cluster is in: Pulumi's AWS provider and boto3 must both ask it, in every process.

An update stores, without credentials, how it asked (`aws.json`), so that the command asks the same account.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pulumi
from botocore.exceptions import BotoCoreError, ClientError

from ....agent.files import write_whole
from ....errors import SpecError
from ....paths import make_private, read_json, state_folder
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import SSM
from ...base import ClusterRef
from ..machine import ssh
from . import session, settings
from .errors import refuse_no_region
from .settings import AssumedRole, AwsSettings, Login

PACKAGE = "aws"
_FILE = "aws.json"
_SSM_SERVICES = {"ssm", "sts"}
"""What `aws ssm start-session` calls: the second for a profile with a role."""

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
    session.refuse_forbidden(present, region)
    account = session.account(region)
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
    return place.region if place else present.region or session.default_region()


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
    return None if _provider_region(place, settings.current()) == region else region


def plan_line(region: str) -> str:
    """The account, with its alias where the user may read it, for the preview."""
    source = settings.current().title
    try:
        names = ", ".join(session.client("iam", region).list_account_aliases()["AccountAliases"])
    except (ClientError, BotoCoreError):
        names = ""
    return f"AWS account {session.account(region)}{f' ({names})' if names else ''} in {region}{f', by {source}' if source else ''}"


def store(cluster: ClusterRef) -> None:
    """Store how a program asks AWS about the cluster, for the command. In the command it does nothing."""
    own = settings.own()
    if own is None:
        return
    proxies = tuple((scheme, url) for scheme, url in own.proxies if "@" not in url)
    data = {
        "account": session.account(ssh.region(cluster)),
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
        yield region or session.default_region()


def remember(home: str) -> None:
    """Have the command ask about a discovered cluster by the settings of now, if no update on this computer stored others."""
    _discovered[home] = settings.current()


def verify(cluster: ClusterRef, account: str = "") -> None:
    """Check that the credentials are of the cluster's account, before Pulumi deletes what it cannot find in another one. The account
    is that of the state, where it is given: a computer without an update of the cluster has no other.

    Raises:
        SpecError: they are of another account.
        Unreachable: AWS does not respond.
    """
    with of(cluster, account):
        session.client("ec2", ssh.region(cluster))
