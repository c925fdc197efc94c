"""Who asks AWS: the stack's configuration in programs and dynamic providers, a cluster's last update in the command, or the
environment; and what a user does to log in again."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.session
from botocore.exceptions import BotoCoreError

from ... import stack_config
from .aws_settings import AwsSettings, settings

_NO_LOGIN = "Run `aws configure`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
_KEYS = "AWS_ACCESS_KEY_ID"


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
    present = _of_stack()
    _programs[:] = [present]
    return present


def own() -> AwsSettings | None:
    """The settings of the stack, in its program and in a process of its dynamic providers; None in the command."""
    if stack_config.is_provider():
        return _of_stack()
    return _programs[0] if _programs else None


def _of_stack() -> AwsSettings:
    return settings(lambda name: stack_config.value("aws", name))


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
    profile = _profile(present) or ("default" if "default" in _profiles(present) else "")
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
    name, profile = _with_credentials(_profile(present) or "default", _profiles(present))
    return _remedy_of_profile(name, profile)


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


def _profile(present: AwsSettings) -> str:
    """The profile that is used; empty for `default`."""
    return present.profile or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or ""


def _profiles(present: AwsSettings) -> Mapping[str, Mapping[str, Any]]:
    """The profiles of the user's files; none where these cannot be read."""
    session = botocore.session.Session(profile=present.profile or None)
    for variable, path in (("config_file", present.config_file), ("credentials_file", present.credentials_file)):
        if path:
            session.set_config_variable(variable, str(Path(path).expanduser()))
    try:
        profiles: Mapping[str, Mapping[str, Any]] = session.full_config["profiles"]
    except (BotoCoreError, OSError):
        return {}
    return profiles


def _with_credentials(name: str, profiles: Mapping[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    """The profile that a profile with a role has its credentials from; the profile itself where it has no role."""
    visited = [name]
    while (source := profiles.get(visited[-1], {}).get("source_profile")) and source not in visited:
        visited.append(source)
    return visited[-1], profiles.get(visited[-1], {})
