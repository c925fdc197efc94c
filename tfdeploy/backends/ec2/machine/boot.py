"""Waits until machines have booted, and stores the failures.

A machine is ready when its engine has the label that the boot script sets last. Its console is read for its host key, and where
it is late or has ended.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypedDict, TypeVar

from ....agent.polling import wait_until
from ....errors import BackendError, Unreachable
from ...base import ClusterRef
from ...docker.engine.engine import Engine
from .. import cleanup
from ..aws import api
from . import boot_failures, ssh
from .instance_poll import InstancePoll
from .known_hosts import host_key
from .model import LIVE, BootFailure, BootKind
from .user_data import FAILED, GENERATION_LABEL, READY, STARTED

BOOT_SECONDS = 900.0
UNKNOWN_SECONDS = 60.0
"""How long EC2 may not know a new instance everywhere."""

LATE_SECONDS = 60.0
"""After so long the console of a machine that is not ready is read: its boot script may have failed."""

_POLL_SECONDS, _TAIL_LINES = 1.0, 25

T = TypeVar("T")


class Member(TypedDict):
    """A machine of the Swarm, as Pulumi's state has it."""

    machine: str
    instance_id: str
    address: str
    """Its address for ssh (`ssh.Host`)."""
    private_ip: str
    generation: str
    is_manager: bool
    kind: dict[str, str]
    """`BootKind`."""
    labels: dict[str, str]


class BootFailed(BackendError):
    """A machine has not become ready, and will not."""

    def __init__(self, message: str, reason: str, console: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.console = console


def engine_of(cluster: ClusterRef, member: Member) -> Engine:
    """The engine of a machine, over ssh."""
    return ssh.engine(cluster, member["machine"])


@contextmanager
def stored_failure(cluster: ClusterRef, member: Member) -> Iterator[None]:
    """Store a failed boot for the next plan."""
    try:
        yield
    except BootFailed as error:
        kind = BootKind(**member["kind"])
        failure = BootFailure(member["instance_id"], member["generation"], kind, error.reason, error.console)
        boot_failures.add(cluster, member["machine"], failure)
        raise


def wait_for_host_key(cluster: ClusterRef, member: Member, poll: InstancePoll) -> str:
    """The host key that the machine prints on its console.

    Raises:
        BackendError: its boot failed, or took too long.
    """

    def check() -> tuple[str, str]:
        return host_key(poll.console(member["instance_id"])), "did not boot: its console shows no host key"

    return _wait(cluster, member, poll, check)


def wait_until_ready(cluster: ClusterRef, member: Member, poll: InstancePoll, log: Callable[[str], None]) -> None:
    """Wait until the boot script has configured the machine's engine; `log` gets the progress.

    Raises:
        BackendError: its boot failed, or took too long.
    """
    engine, begin = engine_of(cluster, member), time.monotonic()
    route = member["address"] if member["address"] != member["instance_id"] else "through SSM"
    log(f"{member['machine']}: connecting ({member['instance_id']}, {route})")

    def check() -> tuple[bool, str]:
        try:
            labels = engine.call(lambda api: api.info()).get("Labels") or []
        except Unreachable as error:
            return False, f"was not ready: {error}"
        return f"{GENERATION_LABEL}={member['generation']}" in labels, "was not ready: its boot script is still running"

    _wait(cluster, member, poll, check)
    boot_failures.remove(cluster, member["machine"])
    log(f"{member['machine']}: connected after {time.monotonic() - begin:.0f} s")


def _wait(cluster: ClusterRef, member: Member, poll: InstancePoll, check: Callable[[], tuple[T, str]]) -> T:
    """The first true value of `check`, which returns the problem too."""
    begin = time.monotonic()
    problem = ""

    def attempt() -> T:
        nonlocal problem
        value, problem = check()
        if not value:
            refuse_ended(member, poll, time.monotonic() - begin)
        return value

    value = wait_until(attempt, BOOT_SECONDS, pause=_POLL_SECONDS)
    if not value:
        raise _late(cluster, member, problem)
    return value


def refuse_ended(member: Member, poll: InstancePoll, waited: float) -> None:
    """Check that the boot has not failed yet and the instance exists, after `waited` seconds.

    Raises:
        BackendError: it failed, or the instance is gone.
    """
    instance_id = member["instance_id"]
    state = poll.state(instance_id)
    is_gone = state is not None and state not in LIVE and (state or waited > UNKNOWN_SECONDS)
    console = poll.console(instance_id) if is_gone or waited > LATE_SECONDS else ""
    if FAILED in console:
        raise failure_of(member, "did not boot: its boot script failed", console)
    if is_gone:
        raise failure_of(member, f"did not boot: EC2 reports {instance_id} as {state or 'gone'}", console)


def _late(cluster: ClusterRef, member: Member, problem: str) -> BackendError:
    """The error for a machine that has not become ready. It is terminated if its boot script has never run, because then
    nothing on it terminates it."""
    region, instance_id = ssh.region(cluster), member["instance_id"]
    console = api.console(region, instance_id)
    reason = f"{problem}, within {BOOT_SECONDS:g} s"
    if console and STARTED not in console:
        cleanup.terminate(region, [instance_id])
        reason += ". Its boot script has never run (does its image have cloud-init?), so it was terminated"
    return failure_of(member, reason, console)


def failure_of(member: Member, reason: str, console: str) -> BackendError:
    """The error. If the script reports that it has ended, the boot has not failed: this computer cannot reach the machine."""
    tail = "\n".join(f"  {line}" for line in console.rstrip().splitlines()[-_TAIL_LINES:])
    end = f"The end of its console:\n{tail}" if tail else "Its console is empty."
    message = f"{member['machine']} {reason}. {end}"
    return BackendError(message) if READY in console else BootFailed(message, reason, tail)
