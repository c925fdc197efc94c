"""By which settings AWS is asked: those of the stack for Pulumi's AWS provider, as far as boto3 can use them, in programs and dynamic
providers; those of a cluster's last update in the command; or the environment's. And what a user does to log in again.

https://www.pulumi.com/registry/packages/aws/installation-configuration. Credentials are only in the memory of the process: neither in
a state nor in a file of tfdeploy.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError
from botocore.session import Session

from ....errors import SpecError
from ....units import seconds
from ... import stack_config

_ACCOUNT_DIGITS = 12
_NO_LOGIN = "Run `aws configure`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
_KEYS = "AWS_ACCESS_KEY_ID"

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


def stack_settings(read: Read) -> AwsSettings:
    """The settings of the stack, by `read`.

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
        path = f"aws:{setting}{'[0]' if setting == 'assumeRoles' else ''}.roleArn"
        remedy = f"Set roleArn, such as `pulumi config set --path '{path}' arn:aws:iam::123456789012:role/NAME`."
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


def _duration(setting: str, text: object) -> int:
    try:
        return int(seconds(str(text)))
    except ValueError:
        wrong = f"duration {text!r} is not valid"
        raise SpecError(f"configuration aws:{setting}", wrong, 'Give it as "1h" or "30m".') from None


@dataclass(frozen=True)
class Login:
    """How AWS is asked."""

    settings: AwsSettings = field(default_factory=AwsSettings)
    account: str = ""
    """The account of the cluster that is asked about; empty where any account will do."""
    cluster: str = ""
    """The name of that cluster."""


_programs: list[AwsSettings] = []
"""The settings of the running program's stack; none in the command, and in a process of dynamic providers."""

_login: ContextVar[Login | None] = ContextVar("login", default=None)
"""The login for the cluster that the command asks about."""


def use_stack() -> AwsSettings:
    """Ask AWS as the running program's stack is configured, from now on; these settings.

    Raises:
        SpecError: the configuration is not valid.
    """
    _programs[:] = [stack_settings(_read)]
    return _programs[0]


def own() -> AwsSettings | None:
    """The settings of the stack, in its program and in a process of its dynamic providers; None in the command."""
    if stack_config.is_provider():
        return stack_settings(_read)
    return _programs[0] if _programs else None


def _read(name: str) -> Any:
    return stack_config.value("aws", name)


@contextmanager
def logged_in(login: Login) -> Iterator[None]:
    """Ask AWS in this thread by this login; where the process has its own settings, by those, in the account of the login."""
    token = _login.set(login)
    try:
        yield
    finally:
        _login.reset(token)


def current_login() -> Login:
    """The login for the cluster that is asked about."""
    return _login.get() or Login()


def current() -> AwsSettings:
    """The settings that are used now."""
    return own() or current_login().settings


def forget() -> None:
    """Forget the program's login: for another program in the same process, and for tests."""
    _programs.clear()


def title() -> str:
    """Where the credentials come from, for people; empty where no file and no variable has any."""
    present = current()
    if present.title:
        return present.title
    if _KEYS in os.environ:
        return _KEYS
    core = core_session(present)
    profile = core.profile or ("default" if "default" in _profiles(core) else "")
    return f"profile {profile}" if profile else ""


def remedy() -> str:
    """What a user does to log in again, by the way in which the credentials are obtained."""
    present = current()
    if present.access_key:
        return "Set aws:accessKey, aws:secretKey and, for temporary credentials, aws:token again."
    if present.web_identity:
        return "Get a new token for aws:assumeRoleWithWebIdentity, and check the trust policy of its role."
    if _KEYS in os.environ and not present.profile:
        return (
            f"Set {_KEYS}, AWS_SECRET_ACCESS_KEY and, for temporary credentials, AWS_SESSION_TOKEN again, "
            "or unset them and set AWS_PROFILE."
        )
    core = core_session(present)
    profiles, visited = _profiles(core), [core.profile or "default"]
    # A profile with a role has its credentials from another one.
    while (source := profiles.get(visited[-1], {}).get("source_profile")) and source not in visited:
        visited.append(source)
    return _remedy_of_profile(visited[-1], profiles.get(visited[-1], {}))


def _remedy_of_profile(name: str, profile: Mapping[str, Any]) -> str:
    if "sso_session" in profile or "sso_start_url" in profile:
        return f"Run `aws sso login --profile {name}`."
    if "login_session" in profile:
        return f"Run `aws login --profile {name}`."
    if "credential_process" in profile:
        return f"Run the credential_process of the profile {name} to see what fails: `{profile['credential_process']}`."
    if "web_identity_token_file" in profile:
        return f"Get a new token for the profile {name}: {profile['web_identity_token_file']}."
    if "credential_source" in profile:
        return f"Check the credential_source {profile['credential_source']} of the profile {name}."
    if "aws_access_key_id" in profile:
        return f"Run `aws configure --profile {name}` to set its keys again, or choose another profile (AWS_PROFILE)."
    return _NO_LOGIN


def core_session(present: AwsSettings) -> Session:
    """botocore's session with the profile and the files of these settings."""
    core = Session(profile=present.profile or None)
    for variable, path in (("config_file", present.config_file), ("credentials_file", present.credentials_file)):
        if path:
            core.set_config_variable(variable, str(Path(path).expanduser()))
    return core


def _profiles(core: Session) -> Mapping[str, Mapping[str, Any]]:
    """The profiles of the user's files; none where these cannot be read."""
    try:
        profiles: Mapping[str, Mapping[str, Any]] = core.full_config["profiles"]
    except (BotoCoreError, OSError):
        return {}
    return profiles
