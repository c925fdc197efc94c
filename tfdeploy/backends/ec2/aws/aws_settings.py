"""The settings of the stack for Pulumi's AWS provider, as far as boto3 can use them: https://www.pulumi.com/registry/packages/aws/installation-configuration.

Credentials are only in the memory of the process: neither in a state nor in a file of tfdeploy.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....errors import SpecError
from ....units import seconds

_ACCOUNT_DIGITS = 12

Read = Callable[[str], Any]
"""The value of a setting, by its name without `aws:`; None where it is not set."""


@dataclass(frozen=True)
class AssumedRole:
    """A role that is assumed, with the parameters of the call of STS."""

    arn: str
    parameters: str
    """JSON: the other parameters of AssumeRole, or of AssumeRoleWithWebIdentity."""
    token: str = field(default="", repr=False)
    """The token of a web identity; empty for none."""
    token_file: str = ""


@dataclass(frozen=True)
class AwsSettings:
    """Which credentials are used, where AWS is, and which accounts are allowed. Empty: what boto3 finds in the environment."""

    profile: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    roles: tuple[AssumedRole, ...] = ()
    """Each is assumed with the credentials of the one before."""
    web_identity: AssumedRole | None = None
    config_file: str = ""
    credentials_file: str = ""
    endpoints: tuple[tuple[str, str], ...] = ()
    """Pairs of a service, as Pulumi names it, and its URL."""
    allowed_accounts: tuple[str, ...] = ()
    forbidden_accounts: tuple[str, ...] = ()
    proxies: tuple[tuple[str, str], ...] = ()
    """Pairs of a scheme and the URL of its proxy."""
    ca_bundle: str = ""
    insecure: bool = False
    fips: bool = False
    dualstack: bool = False
    sts_region: str = ""
    max_retries: str = ""

    @property
    def title(self) -> str:
        """Where the credentials come from, for people; empty for the environment."""
        sources = [f"profile {self.profile}"] if self.profile else []
        sources += ["aws:accessKey"] if self.access_key else []
        sources += [f"role {role.arn}" for role in (*filter(None, [self.web_identity]), *self.roles)]
        return ", ".join(sources)


def settings(read: Read) -> AwsSettings:
    """The settings of the stack.

    Raises:
        SpecError: a value has another form than Pulumi's AWS provider expects, or boto3 cannot do it.
    """
    web_identity = _value(read, "assumeRoleWithWebIdentity", dict)
    proxies = {"http": _text(read, "httpProxy"), "https": _text(read, "httpsProxy")}
    return AwsSettings(
        profile=_text(read, "profile"),
        region=_text(read, "region"),
        access_key=_text(read, "accessKey"),
        secret_key=_text(read, "secretKey"),
        token=_text(read, "token"),
        roles=tuple(_role("assumeRoles", role) for role in _value(read, "assumeRoles", list)),
        web_identity=_role("assumeRoleWithWebIdentity", web_identity) if web_identity else None,
        config_file=_only(read, "sharedConfigFiles"),
        credentials_file=_only(read, "sharedCredentialsFiles"),
        endpoints=tuple(pair for item in _value(read, "endpoints", list) for pair in item.items()),
        allowed_accounts=tuple(map(_account, _value(read, "allowedAccountIds", list))),
        forbidden_accounts=tuple(map(_account, _value(read, "forbiddenAccountIds", list))),
        proxies=tuple((scheme, url) for scheme, url in proxies.items() if url),
        ca_bundle=_text(read, "customCaBundle"),
        insecure=_is_true(read, "insecure"),
        fips=_is_true(read, "useFipsEndpoint"),
        dualstack=_is_true(read, "useDualstackEndpoint"),
        sts_region=_text(read, "stsRegion"),
        max_retries=_text(read, "maxRetries"),
    )


def _text(read: Read, name: str) -> str:
    value = read(name)
    return "" if value is None else str(value)


def _is_true(read: Read, name: str) -> bool:
    return _text(read, name).lower() == "true"


def _value(read: Read, name: str, kind: type) -> Any:
    """A list or a mapping; in the configuration it is JSON."""
    value = read(name)
    if value in (None, ""):
        return kind()
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        value = None
    if not isinstance(value, kind):
        form = "a list" if kind is list else "a mapping"
        remedy = f"Set it with `pulumi config set --path 'aws:{name}{'[0]' if kind is list else '.NAME'}' VALUE`."
        raise SpecError(f"configuration aws:{name}", f"is not {form} as JSON", remedy)
    return value


def _account(value: Any) -> str:
    """The id of an account: `pulumi config set --path` stores a number, and Pulumi passes numbers as floats."""
    return str(int(value)).zfill(_ACCOUNT_DIGITS) if isinstance(value, (int, float)) else str(value)


def _only(read: Read, name: str) -> str:
    files = _value(read, name, list)
    if len(files) > 1:
        wrong = f"has {len(files)} files, but boto3, which tfdeploy uses beside Pulumi's AWS provider, reads one"
        raise SpecError(f"configuration aws:{name}", wrong, "Keep one file.")
    return str(files[0]) if files else ""


_ROLE_PARAMETERS = {
    "externalId": "ExternalId",
    "policy": "Policy",
    "sessionName": "RoleSessionName",
    "sourceIdentity": "SourceIdentity",
    "transitiveTagKeys": "TransitiveTagKeys",
}


def _role(setting: str, role: Any) -> AssumedRole:
    if not isinstance(role, Mapping) or not role.get("roleArn"):
        remedy = f"Set roleArn, such as {_example(setting)}."
        raise SpecError(f"configuration aws:{setting}", "has a role without roleArn", remedy)
    parameters = {theirs: role[ours] for ours, theirs in _ROLE_PARAMETERS.items() if role.get(ours)}
    parameters.setdefault("RoleSessionName", "tfdeploy")
    if role.get("duration"):
        parameters["DurationSeconds"] = _duration(setting, role["duration"])
    if role.get("policyArns"):
        parameters["PolicyArns"] = [{"arn": arn} for arn in role["policyArns"]]
    if role.get("tags"):
        parameters["Tags"] = [{"Key": key, "Value": value} for key, value in role["tags"].items()]
    return AssumedRole(
        arn=str(role["roleArn"]),
        parameters=json.dumps(parameters, sort_keys=True),
        token=str(role.get("webIdentityToken") or ""),
        token_file=str(role.get("webIdentityTokenFile") or ""),
    )


def _example(setting: str) -> str:
    path = f"aws:{setting}[0].roleArn" if setting == "assumeRoles" else f"aws:{setting}.roleArn"
    return f"`pulumi config set --path '{path}' arn:aws:iam::123456789012:role/NAME`"


def _duration(setting: str, text: object) -> int:
    try:
        return int(seconds(str(text)))
    except ValueError:
        wrong = f"duration {text!r} is not valid"
        raise SpecError(f"configuration aws:{setting}", wrong, 'Give it as "1h" or "30m".') from None
