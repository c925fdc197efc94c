"""What a resource type is to the stand-in, and how it reaches AWS."""

import functools
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.box.provider import retries
from tests.box.provider.values import Props

PATIENCE = 600.0
"""How many seconds the stand-in waits for a state of AWS."""


class Refused(Exception):
    """AWS, or the stand-in, will not do it."""


Keys = tuple[str | None, str | None, str | None]
"""An access key, its secret and a token."""


class Aws:
    """Clients of AWS's services, as the provider is configured."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}

    def region(self, props: Props) -> str:
        """The region of a resource: its own, else the provider's, else the environment's."""
        named = props.get("region") or self._settings.get("region") or boto3.Session().region_name
        if not named:
            raise Refused("no region: set aws:region or AWS_REGION")
        return str(named)

    def setting(self, name: str, otherwise: Any) -> Any:
        """A setting; the engine gives lists and objects as JSON."""
        given = self._settings.get(name) or otherwise
        return json.loads(given) if isinstance(given, str) and not isinstance(otherwise, str) else given

    @property
    def default_tags(self) -> dict[str, str]:
        """The tags of all that has tags."""
        return dict(self.setting("defaultTags", {}).get("tags", {}))

    def check_account(self) -> None:
        """Refuse to be configured for an account that is not allowed, in the words of the real provider."""
        allowed, forbidden = (set(map(str, self.setting(f"{name}AccountIds", []))) for name in ("allowed", "forbidden"))
        if (allowed or forbidden) and (self.account in forbidden or (allowed and self.account not in allowed)):
            raise Refused(f"AWS account ID not allowed: {self.account}")

    @functools.cached_property
    def _keys(self) -> Keys:
        """What clients are given: the keys of a profile, else of the environment; then of the roles, one after the other."""
        found = botocore.session.Session(profile=self.setting("profile", "") or None).get_credentials()
        keys: Keys = (found.access_key, found.secret_key, found.token) if found else (None, None, None)
        for role in self.setting("assumeRoles", []):
            name = role.get("sessionName", "stand-in")
            made = self._made("sts", self.region({}), keys).assume_role(RoleArn=role["roleArn"], RoleSessionName=name)
            taken = made["Credentials"]
            keys = (taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"])
        return keys

    def _made(self, service: str, region: str, keys: Keys) -> Any:
        return boto3.client(
            service,
            region_name=region,
            aws_access_key_id=keys[0],
            aws_secret_access_key=keys[1],
            aws_session_token=keys[2],
            config=Config(retries={"max_attempts": 0}, max_pool_connections=64),
        )

    def client(self, service: str, props: Props) -> Any:
        """The client of a service for a resource."""
        key = service, self.region(props)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._made(service, key[1], self._keys)
                retries.retry_calls(self._clients[key], int(self._settings.get("maxRetries") or retries.ATTEMPTS))
            return self._clients[key]

    @functools.cached_property
    def account(self) -> str:
        """The number of the account."""
        return str(self.client("sts", {}).get_caller_identity()["Account"])


Create = Callable[[Aws, Props], str]
Read = Callable[[Aws, str, Props], Props | None]
Update = Callable[[Aws, str, Props, Props], None]
Delete = Callable[[Aws, str, Props], None]


@dataclass(frozen=True)
class Kind:
    """A resource type: every property of the SDK that it does not name in `replaces` or `updates` is refused."""

    token: str
    create: Create
    read: Read
    """What AWS tells of it, by the names of the outputs; None when it is gone."""
    delete: Delete
    replaces: frozenset[str]
    """Properties, or paths in them, whose change needs a new resource."""
    updates: Mapping[str, Update] = field(default_factory=dict)
    """Properties, or paths in them, that are changed in place, and how."""
    cleared: frozenset[str] = frozenset()
    """Properties, or paths in them, that are undone when they are no longer given: the others stay as they are."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What properties, or paths in them, are when they are not given."""
    either: frozenset[str] = frozenset()
    """Properties that exclude each other: another one of them needs a new resource."""
    named: str = ""
    """The property that gets a name of its own when none is given."""
    settles: Callable[[Props], frozenset[str]] = lambda _: frozenset()
    """Properties that replace, but only with these inputs."""
    moves: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Outputs that are not known before an update of a property."""

    def way(self, path: str, given: Props) -> Update | None:
        """How a change of this path is made: None by a new resource."""
        forced = self.replaces | self.settles(given)
        parts = path.split(".")
        for prefix in (".".join(parts[:size]) for size in range(len(parts), 0, -1)):
            if prefix in forced:
                return None
            if prefix in self.updates:
                return self.updates[prefix]
        raise Refused(f"the stand-in does not carry out {path} of {self.token}")

    def wanted(self, given: Props) -> Props:
        """The inputs with their defaults."""
        found = dict(given)
        for path, value in self.defaults.items():
            name, _, part = path.partition(".")
            if not part:
                found.setdefault(name, value)
            elif isinstance(found.get(name), dict):
                found[name] = {part: value, **found[name]}
        return found


def nothing(aws: Aws, key: str, old: Props, new: Props) -> None:
    """An update of what only the provider itself looks at."""


def missing(error: ClientError) -> bool:
    """Whether AWS says that it is not there."""
    code = str(error.response["Error"]["Code"])
    return "NotFound" in code or code == "NoSuchEntity"


def found(call: Callable[[], Any]) -> Any:
    """The answer of AWS; None when the thing is not there."""
    try:
        return call()
    except ClientError as error:
        if missing(error):
            return None
        raise


def until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Wait for a state of AWS."""
    deadline = time.monotonic() + seconds
    pause = 0.05
    while not condition():
        if time.monotonic() > deadline:
            raise Refused(f"{what}: not within {seconds:g} s")
        time.sleep(pause)
        pause = min(1.0, pause * 1.5)


def appeared(look: Callable[[], Any], what: str) -> None:
    """Wait until something new is found: its first reader may come before it."""
    until(lambda: look() is not None, f"{what} to be found", retries.PROPAGATION)


def picked(given: Mapping[str, Any], **names: str) -> dict[str, Any]:
    """What is given, by AWS's names: `picked(props, InstanceType="instanceType")`."""
    return {theirs: given[ours] for theirs, ours in names.items() if given.get(ours) is not None}


def told(**values: Any) -> Props:
    """What AWS tells: what it does not is left out."""
    return {name: value for name, value in values.items() if value is not None}


def pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as AWS takes them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def tags_of(listed: list[dict[str, str]] | None) -> Props:
    """The outputs `tags` and `tagsAll`; AWS's own tags are nobody's."""
    tags = {tag["Key"]: tag["Value"] for tag in listed or [] if not tag["Key"].startswith("aws:")}
    return {"tags": tags, "tagsAll": tags}


def stale(old: Props, new: Props) -> list[str]:
    """The keys of tags that go."""
    return [key for key in old.get("tags", {}) if key not in new.get("tags", {})]
