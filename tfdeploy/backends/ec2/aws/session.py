"""The clients of AWS's services: one session for a process and its settings, and the account that it belongs to."""

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    AssumeRoleWithWebIdentityCredentialFetcher,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import NoCredentialsError

from ....errors import SpecError
from ...docker.task_runner import DELETE_UNREACHABLE
from . import settings
from .errors import aws_errors
from .settings import AssumedRole, AwsSettings, Login, core_session, current, current_login

_TIMEOUT_SECONDS = 20
_ENDPOINT_NAMES = {"service-quotas": "servicequotas"}
"""boto3's name of a service to Pulumi's, where they differ."""


def client(service: str, region: str) -> Any:
    """A client of an AWS service; one for each service and region in a process.

    Raises:
        SpecError: the credentials belong to an account that is not allowed, or to another one than the cluster.
    """
    present, login = current(), current_login()
    if service != "sts":
        _refuse_account(present, login, region)
    return _client(present, service, region)


def account(region: str) -> str:
    """The id of the account that the credentials belong to. Nothing else is asked for it."""
    return _account(current(), region)


def _refuse_account(present: AwsSettings, login: Login, region: str) -> None:
    is_ignored = os.environ.get(DELETE_UNREACHABLE) == "1"
    if login.account and not is_ignored and _account(present, region) != login.account:
        wrong = f"the cluster is in the account {login.account}, but the credentials are of {_account(present, region)}"
        remedy = (
            "Set aws:profile, or AWS_PROFILE, to a login of that account. If it no longer exists, "
            f"`{DELETE_UNREACHABLE}=1 pulumi destroy` removes the cluster from the state only."
        )
        raise SpecError(f"{login.cluster}: AWS", wrong, remedy)
    refuse_forbidden(present, region)


def refuse_forbidden(present: AwsSettings, region: str) -> None:
    """Check the account of the credentials against the configuration.

    Raises:
        SpecError: it is not among `aws:allowedAccountIds`, or it is among `aws:forbiddenAccountIds`.
    """
    if not present.allowed_accounts and not present.forbidden_accounts:
        return
    present_account = _account(present, region)
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
    for cached in (_session, _client, _account):
        cached.cache_clear()


@cache
def _account(present: AwsSettings, region: str) -> str:
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
