"""Programs run against Pulumi's own mocks, which remember what they were asked for."""

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi.runtime import mocks, set_all_config
from pulumi.runtime.settings import set_root_resource
from pulumi.runtime.sync_await import _ensure_event_loop

from tfdeploy import TensorFlowCluster
from tfdeploy.cluster import TYPE

SECRET = "4dabf18193072939515e22adb298388d"
"""Pulumi's mark of a value that is more than plain JSON; a secret has the other."""
IS_SECRET = "1b47061264138c4ac30d75fd1eb44270"

TOKEN = "a-token"
"""What every cleanup makes."""


class Recorder(mocks.MockMonitor):
    """An engine that makes everything, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.maker = Maker()
        super().__init__(self.maker)
        self.after: dict[str, list[str]] = {}
        self.outputs: list[str] = []
        self.protected: set[str] = set()
        self.providers: dict[str, str] = {}
        """The URN and the id of each resource's explicit provider; empty for the default one."""

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802
        self.after[request.name] = sorted(urn.rpartition("::")[2] for urn in request.dependencies)
        self.protected |= {request.name} if request.protect else set()
        self.providers[request.name] = request.provider
        made = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        for key in {*request.additionalSecretOutputs} & {*made.object}:
            if isinstance(text := made.object[key], str):
                made.object.update({key: {SECRET: IS_SECRET, "value": text}})
        return made

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        if f"${TYPE}::" in request.urn:
            self.outputs = sorted(request.outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]

    @property
    def inputs(self) -> dict[str, dict[str, Any]]:
        """What each resource was given, by name."""
        return self.maker.inputs

    def urns(self) -> str:
        """Every resource, the stack's prefix cut off, a line each."""
        return "\n".join(sorted(urn.partition("::project::")[2] for urn in self.get_registered_resources()))


class Maker(mocks.Mocks):
    """Gives each resource the outputs that its provider would compute."""

    def __init__(self) -> None:
        self.inputs: dict[str, dict[str, Any]] = {}
        self.kinds: dict[str, str] = {}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]]]:
        # moto's account
        return {"accountId": "123456789012"} if args.token.endswith(":getCallerIdentity") else {}, []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[Any, Any]]:
        self.inputs[args.name], self.kinds[args.name] = args.inputs, args.typ
        named = {"name": args.name, "keyName": args.name}
        made = {"token": TOKEN, "created_at": "now", "submitted_at": "2026-11-21T12:00:00+00:00"}
        if args.typ.endswith(":SshKey"):
            made |= {"public_key": "ssh-ed25519 AAAA tfdeploy", "private_key": "a-private-key"}
        return f"{args.name}-id", {**named, **args.inputs, **made}


def run(program: Callable[[], Any], preview: bool = False, **config: str) -> Recorder:
    """Run a program against the mocks, as if it were alone in its process."""
    _ensure_event_loop()  # type: ignore[no-untyped-call]  # `asyncio.run` leaves the thread without one
    set_root_resource(None)  # type: ignore[arg-type]
    monitor = Recorder()
    mocks.set_mocks(monitor.maker, preview=preview, monitor=monitor)
    set_all_config({f"tfdeploy:{name}": value for name, value in config.items()})
    try:
        pulumi.runtime.test(program)()  # type: ignore[no-untyped-call]
    finally:
        set_all_config({})
        mocks.set_mocks(
            monitor.maker, preview=False, monitor=monitor
        )  # other tests of the process are not in a preview
    return monitor


def declare(name: str = "mnist", **args: Any) -> TensorFlowCluster:
    """A cluster that nobody waits for, with a command unless one is given."""
    return TensorFlowCluster(name, {"command": ["python", "-c", "1"], "wait": "0", **args})  # type: ignore[typeddict-item]


def without_secrets(value: Any) -> Any:
    """What stands in plain sight of a value."""
    if isinstance(value, dict):
        is_secret = value.get(SECRET) == IS_SECRET
        return "secret" if is_secret else {key: without_secrets(item) for key, item in value.items()}
    return [without_secrets(item) for item in value] if isinstance(value, list) else value


def refused(make: Callable[[], Any]) -> str:
    """What the refusal of a cluster says."""
    with pytest.raises(pulumi.RunError) as error:
        make()
    return str(error.value)
