"""The account that a cluster is in: Pulumi's AWS provider and boto3 must both ask it, in every process. And boto3's clients: one
session for a process and its settings.

An update stores its profile and its account (`aws.json`), so that the command asks the same account.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import boto3
import pulumi
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ....agent.system.files import write_whole
from ....errors import SpecError
from ....paths import make_private, read_json, state_folder
from ....spec.cluster import ClusterSpec
from ...base import ClusterRef
from ...record_copy import DELETE_UNREACHABLE
from ..machine import ssh
from . import settings
from .errors import aws_errors, refuse_no_region
from .settings import Login, current

PACKAGE = "aws"
_FILE = "aws.json"
_TIMEOUT_SECONDS = 20

_discovered: dict[str, Login] = {}
"""Home of a cluster to the login by which it was discovered."""


def client(service: str, region: str) -> Any:
    """A client of an AWS service; one for each service and region in a process.

    Raises:
        SpecError: the credentials belong to an account that is not allowed, or to another one than the cluster.
    """
    present = current()
    if service != "sts":
        _refuse_other(present, region)
        _refuse_forbidden(present, region)
    return _client(present.profile, present.region, service, region)


def account_id(region: str) -> str:
    """The id of the account that the credentials belong to. Nothing else is asked for it."""
    return _id_of_account(current().profile, current().region, region)


def _refuse_other(present: Login, region: str) -> None:
    if not present.account or os.environ.get(DELETE_UNREACHABLE) == "1" or account_id(region) == present.account:
        return
    wrong = f"the cluster is in the account {present.account}, but the credentials are of {account_id(region)}"
    remedy = (
        "Set AWS_PROFILE, or aws:profile, to a login of that account, for every command. If it no longer exists, "
        f"`{DELETE_UNREACHABLE}=1 pulumi destroy` removes the cluster from the state only."
    )
    raise SpecError(f"{present.cluster}: AWS", wrong, remedy)


def _refuse_forbidden(present: Login, region: str) -> None:
    """Check the account of the credentials against the configuration.

    Raises:
        SpecError: it is not among `aws:allowedAccountIds`, or it is among `aws:forbiddenAccountIds`.
    """
    allowed, forbidden = present.allowed_accounts, present.forbidden_accounts
    if not allowed and not forbidden:
        return
    found = account_id(region)
    wrong = f"the credentials{f' (by {present.title})' if present.title else ''} are of the account {found}"
    remedy = "Set aws:profile, or AWS_PROFILE, to another login, or correct the list."
    if allowed and found not in allowed:
        raise SpecError("configuration aws:allowedAccountIds", f"{wrong}; allowed: {', '.join(allowed)}", remedy)
    if found in forbidden:
        raise SpecError("configuration aws:forbiddenAccountIds", f"{wrong}, which is forbidden", remedy)


def default_region() -> str:
    """The region of the environment or of the profile; empty for none."""
    with aws_errors(""):
        return str(_session(current().profile, current().region).region_name or "")


def forget() -> None:
    """Forget sessions, accounts and the program's login: for another program in the same process, and for tests."""
    settings.forget()
    for cached in (_session, _client, _id_of_account):
        cached.cache_clear()


@cache
def _id_of_account(profile: str, profile_region: str, region: str) -> str:
    with aws_errors(region):
        return str(_client(profile, profile_region, "sts", region).get_caller_identity()["Account"])


@cache
def _client(profile: str, profile_region: str, service: str, region: str) -> Any:
    config = Config(
        connect_timeout=_TIMEOUT_SECONDS,
        read_timeout=_TIMEOUT_SECONDS,
        retries={"mode": "standard", "max_attempts": 4},
    )
    with aws_errors(region):
        return _session(profile, profile_region).client(service, region_name=region, config=config)


@cache
def _session(profile: str, region: str) -> boto3.Session:
    """A session with this profile and region; boto3 does not read AWS_REGION."""
    return boto3.Session(profile_name=profile or None, region_name=region or os.environ.get("AWS_REGION") or None)


def connect(spec: ClusterSpec, provider: pulumi.ProviderResource | None) -> str:
    """Log in as the stack is configured, and return the cluster's region: the argument's, else the provider's. `provider` is the
    explicit one of the program; None for the stack's default provider. Nothing is asked but who one is.

    Raises:
        SpecError: no region is set, or the account is not allowed.
    """
    present = settings.use_stack()
    region = spec.ec2.region or _provider_region(spec.name, provider)
    refuse_no_region(region)
    _refuse_forbidden(present, region)
    account_id(region)
    return region


def compare(name: str, provider: pulumi.ProviderResource | None, region: str) -> None:
    """Check that Pulumi's AWS provider uses the account of boto3. It is asked, because its settings cannot be read.

    Raises:
        SpecError: it uses another one, it does not respond, or a preview cannot know it.
    """
    import pulumi_aws as aws

    theirs = _ask_provider(name, lambda: aws.get_caller_identity(opts=_invoke_options(provider)).account_id)
    ours = account_id(region)
    if theirs == ours:
        return
    wrong = (
        f"Pulumi's AWS provider uses the account {theirs}, but tfdeploy's own calls use {ours} "
        f"(by {current().title or 'the environment'})"
    )
    remedy = (
        f"Set AWS_PROFILE, or aws:profile where the stack has one, to a profile of {theirs}, for every command: tfdeploy itself uses "
        "no keys and no roles of a stack or a provider."
    )
    raise SpecError(f"{name}: AWS", wrong, remedy)


def _provider_region(name: str, provider: pulumi.ProviderResource | None) -> str:
    """The region of the provider; the default provider has that of the stack, else of the environment or the profile."""
    if provider is None:
        return current().region or default_region()
    import pulumi_aws as aws

    return _ask_provider(name, lambda: aws.get_region(opts=_invoke_options(provider)).region)


def _invoke_options(provider: pulumi.ProviderResource | None) -> pulumi.InvokeOptions | None:
    return pulumi.InvokeOptions(provider=provider) if provider else None


def _ask_provider(name: str, ask: Callable[[], str]) -> str:
    """What the provider answers.

    Raises:
        SpecError: it does not respond, or a preview cannot know it.
    """
    try:
        answer = ask()
    except Exception as error:  # Pulumi has no other class for it
        wrong = f"Pulumi's AWS provider cannot be asked for its account ({str(error).splitlines()[0]})"
        raise SpecError(f"{name}: AWS", wrong, "Correct the settings of the provider.") from None
    if not answer:
        wrong = (
            "the account of the provider is not known in this preview: a resource that does not exist yet configures it"
        )
        remedy = "Run `pulumi up --skip-preview`, or configure the provider with plain values."
        raise SpecError(f"{name}: AWS", wrong, remedy)
    return answer


def region_argument(cluster: ClusterRef, provider: pulumi.ProviderResource | None) -> str | None:
    """The argument `region` of the cluster's AWS resources: None where it is the provider's."""
    region = ssh.region(cluster)
    return None if _provider_region(cluster["name"], provider) == region else region


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
    data = {"account": account_id(ssh.region(cluster)), "profile": own.profile}
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
    name = home.rpartition("/")[2]

    def login(data: Any) -> Login:
        return Login(profile=str(data["profile"]), account=str(data["account"]), cluster=name)

    try:
        return read_json(state_folder() / ssh.SCHEME / name / _FILE, login)
    except FileNotFoundError:
        return _discovered.get(home, Login())


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
    with settings.logged_in(Login(profile=profile)):
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
