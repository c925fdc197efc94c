"""Waits until machines have booted, and stores the failures (`failures/MACHINE.json`, in the cluster's folder on this computer).

A machine is ready when its engine has the label that the boot script sets last. Its console is read for its host key, and where it is
late or has ended: only EC2 can report the console. EC2 is asked on behalf of all machines, and no more often than it allows. A refused
call is repeated later; what was reported before counts until then.
https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
"""

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Generic, TypedDict, TypeVar

from ....agent.system.files import write_whole
from ....agent.system.polling import wait_until
from ....errors import BackendError, Unreachable
from ....paths import make_private, read_json
from ...base import ClusterRef
from .. import cleanup
from ..aws import api
from ..aws.errors import AwsFailure, Kind
from . import ssh
from .model import LIVE, BootFailure
from .user_data import FAILED, GENERATION_LABEL, HOST_KEY, READY, STARTED

BOOT_SECONDS = 900.0
UNKNOWN_SECONDS = 60.0
"""How long EC2 may not know a new instance everywhere."""

LATE_SECONDS = 60.0
"""After so long the console of a machine that is not ready is read: its boot script may have failed."""

_POLL_SECONDS, _TAIL_LINES = 1.0, 25

INTERVAL = 5.0
"""Seconds between two calls that ask the same."""

LONGEST_INTERVAL = 60.0
"""An interval is doubled, up to this, each time that EC2 refuses the call."""

CONSOLES_PER_SECOND = 10.0
"""How many consoles are read in a second, of all machines. EC2 refills 20 calls of one kind a second, for the whole account."""

_KEY = re.compile(rf"{HOST_KEY}(ssh-ed25519 [A-Za-z0-9+/]{{68}})(\s|$)")
"""A whole key: the console may be read while the line is being printed."""

T = TypeVar("T")


class Member(TypedDict):
    """A machine of the Swarm, as Pulumi's state has it."""

    machine: str
    instance_id: str
    address: str
    """Its address for ssh (`ssh.Host`)."""
    private_ip: str
    is_manager: bool
    kind: str
    """What decides whether it boots (`Ec2Machine.boot_kind`)."""
    labels: dict[str, str]


class BootFailed(BackendError):
    """A machine has not become ready, and will not."""

    def __init__(self, message: str, reason: str, console: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.console = console


class _PacedCall(Generic[T]):
    """One call of the API, made by whichever thread asks first after an interval; meanwhile its last response."""

    def __init__(self, call: Callable[[], T], response: T, usual: float = INTERVAL, first: float = 0.0) -> None:
        """`usual` is the interval while EC2 does not refuse the call, and `first` the seconds until the first call."""
        self._call, self._response = call, response
        self._usual, self._interval = usual, usual
        self._next = time.monotonic() + first
        self._lock = threading.Lock()

    def response(self) -> T:
        """The last response, which is renewed if the interval is over and no other thread does that already."""
        if time.monotonic() >= self._next and self._lock.acquire(blocking=False):
            try:
                self._response, self._interval = self._call(), self._usual
            except AwsFailure as error:
                if error.kind is not Kind.THROTTLING:
                    raise
                self._interval = min(2 * self._interval, LONGEST_INTERVAL)
            finally:
                self._next = time.monotonic() + self._interval
                self._lock.release()
        return self._response


class InstancePoll:
    """The states and the consoles of some instances of a region."""

    def __init__(self, region: str, instance_ids: Sequence[str]) -> None:
        nothing: dict[str, str] | None = None
        self._states = _PacedCall[dict[str, str] | None](lambda: api.instance_states(region, instance_ids), nothing)
        usual = max(INTERVAL, len(instance_ids) / CONSOLES_PER_SECOND)
        self._consoles = {
            instance_id: _PacedCall(partial(api.console, region, instance_id), "", usual, number / CONSOLES_PER_SECOND)
            for number, instance_id in enumerate(instance_ids)
        }

    def state(self, instance_id: str) -> str | None:
        """The state of an instance; empty where EC2 does not know it, None where EC2 has not responded yet."""
        states = self._states.response()
        return None if states is None else states.get(instance_id, "")

    def console(self, instance_id: str) -> str:
        """The console output of an instance; empty where EC2 has not responded yet."""
        return self._consoles[instance_id].response()


@contextmanager
def stored_failure(cluster: ClusterRef, member: Member, previous: Collection[str]) -> Iterator[None]:
    """Store a failed boot for the next plan, unless the instance is one of `previous`: it has booted."""
    try:
        yield
    except BootFailed as error:
        if member["instance_id"] in previous:
            raise
        failure = BootFailure(member["instance_id"], member["kind"], error.reason, error.console)
        _add_failure(cluster, member["machine"], failure)
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
    engine, begin = ssh.engine(cluster, member["machine"]), time.monotonic()
    route = member["address"] if member["address"] != member["instance_id"] else "through SSM"
    log(f"{member['machine']}: connecting ({member['instance_id']}, {route})")

    def check() -> tuple[bool, str]:
        try:
            labels = engine.call(lambda api: api.info()).get("Labels") or []
        except Unreachable as error:
            return False, f"was not ready: {error}"
        is_ready = any(label.startswith(f"{GENERATION_LABEL}=") for label in labels)
        return is_ready, "was not ready: its boot script is still running"

    _wait(cluster, member, poll, check)
    _remove_failure(cluster, member["machine"])
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


def host_key(console: str) -> str:
    """The host key in the output of a console; empty before the machine has printed it."""
    match = _KEY.search(console)
    return match[1] if match else ""


def read_failures(cluster: ClusterRef) -> Mapping[str, BootFailure]:
    """Machine to its last failed boot.

    Raises:
        SpecError: a file is damaged, or of another version.
    """
    files = _failures(cluster).glob("*.json")
    return {path.stem: read_json(path, lambda data: BootFailure(**data)) for path in files}


def _add_failure(cluster: ClusterRef, machine: str, failure: BootFailure) -> None:
    """Store a failed boot."""
    make_private(ssh.folder(cluster))
    following = failure.following(read_failures(cluster).get(machine))
    write_whole(_failures(cluster) / f"{machine}.json", json.dumps(asdict(following), indent=1))


def _remove_failure(cluster: ClusterRef, machine: str) -> None:
    """Forget the failures of a machine that has become ready."""
    (_failures(cluster) / f"{machine}.json").unlink(missing_ok=True)


def forget_failures(cluster: ClusterRef) -> None:
    """Forget all failures; the cluster is destroyed."""
    shutil.rmtree(_failures(cluster), ignore_errors=True)


def _failures(cluster: ClusterRef) -> Path:
    return ssh.folder(cluster) / "failures"
