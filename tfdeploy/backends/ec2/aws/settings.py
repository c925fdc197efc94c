"""By which settings boto3 asks AWS: the profile and the region of the stack in programs and dynamic providers; those of a cluster's
last update in the command; else the environment's.

Keys and roles that the stack gives to Pulumi's AWS provider are not used.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from botocore.session import Session

from ....errors import SpecError
from ... import stack_config

_ACCOUNT_DIGITS = 12
_KEYS = "AWS_ACCESS_KEY_ID"
_OTHER_LOGINS = ("accessKey", "assumeRole", "assumeRoles", "assumeRoleWithWebIdentity")
"""Settings by which the provider has other credentials than those of the stack's profile."""

Read = Callable[[str], Any]
"""The value of a setting, by its name without `aws:`; None where it is not set."""


@dataclass(frozen=True)
class Login:
    """How AWS is asked, and which accounts are allowed. Empty: what boto3 finds in the environment, and any account."""

    profile: str = ""
    region: str = ""
    allowed_accounts: tuple[str, ...] = ()
    forbidden_accounts: tuple[str, ...] = ()
    account: str = ""
    """The account of the cluster that is asked about; empty where any account will do."""
    cluster: str = ""
    """The name of that cluster."""

    @property
    def title(self) -> str:
        """Where the credentials come from, for people; empty for the environment."""
        return f"profile {self.profile}" if self.profile else ""


def stack_login(read: Read) -> Login:
    """The login of the stack, by `read`. With keys or roles of its own its profile is not that of its account.

    Raises:
        SpecError: a value has another form than Pulumi's AWS provider expects.
    """
    has_other_login = any(read(name) for name in _OTHER_LOGINS)
    return Login(
        profile="" if has_other_login else str(read("profile") or ""),
        region=str(read("region") or ""),
        allowed_accounts=_accounts(read, "allowedAccountIds"),
        forbidden_accounts=_accounts(read, "forbiddenAccountIds"),
    )


def _accounts(read: Read, name: str) -> tuple[str, ...]:
    """A list of accounts; in the configuration it is JSON."""
    value = read(name)
    if value in (None, ""):
        return ()
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        value = None
    if not isinstance(value, list):
        remedy = f"Set it with `pulumi config set --path 'aws:{name}[0]' VALUE`."
        raise SpecError(f"configuration aws:{name}", "is not a list as JSON", remedy)
    return tuple(map(_account, value))


def _account(value: Any) -> str:
    """The id of an account: `pulumi config set --path` stores a number, and Pulumi passes numbers as floats."""
    return str(int(value)).zfill(_ACCOUNT_DIGITS) if isinstance(value, (int, float)) else str(value)


_programs: list[Login] = []
"""The login of the running program's stack; none in the command, and in a process of dynamic providers."""

_asked: ContextVar[Login | None] = ContextVar("login", default=None)
"""The login for the cluster that is asked about."""


def use_stack() -> Login:
    """Ask AWS as the running program's stack is configured, from now on; this login.

    Raises:
        SpecError: the configuration is not valid.
    """
    _programs[:] = [stack_login(_read)]
    return _programs[0]


def own() -> Login | None:
    """The login of the stack, in its program and in a process of its dynamic providers; None in the command."""
    if stack_config.is_provider():
        return stack_login(_read)
    return _programs[0] if _programs else None


def _read(name: str) -> Any:
    return stack_config.value("aws", name)


@contextmanager
def logged_in(login: Login) -> Iterator[None]:
    """Ask AWS in this thread by this login; where the process has its own one, by that, in the account of this."""
    token = _asked.set(login)
    try:
        yield
    finally:
        _asked.reset(token)


def current() -> Login:
    """The login that is used now."""
    asked, stack = _asked.get() or Login(), own()
    return replace(stack, account=asked.account, cluster=asked.cluster) if stack else asked


def forget() -> None:
    """Forget the program's login: for another program in the same process, and for tests."""
    _programs.clear()


def title() -> str:
    """Where the credentials come from, for people; empty where neither a profile nor a variable is chosen."""
    profile = current().profile
    if not profile and _KEYS in os.environ:
        return _KEYS
    profile = Session(profile=profile or None).profile or ""
    return f"profile {profile}" if profile else ""
