"""The calls of every backend to a cluster's controller, however it is reached."""

import datetime
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..agent.model.run_spec import RunSpec
from ..agent.model.run_state import FINAL, TaskState
from ..agent.record.record import PROTOCOL, RecordView, ViewRequest
from ..agent.system.polling import wait_until
from ..agent.wire.rpc import CallError
from ..errors import BackendError, Unreachable
from ..paths import output_files
from ..program.plugin_exit import is_cancelled
from .base import RunProps

if TYPE_CHECKING:
    from ..agent.model.task_dump import TaskDump

_POLL_SECONDS = 0.05
_LONGEST_PAUSE = 1.0
"""A call that takes long, such as the first in a container, is not repeated without a pause."""

_SILENT_SECONDS = 5.0
"""A wait that takes longer is printed."""

_SHOWN_TASKS = 5

_UNWRITABLE_SECONDS = 120.0
"""How long artifacts are waited for that the record cannot take, as on a full disk: their launcher gives up before."""

_CONTROLLER_SECONDS = 20.0
_DUMP_SECONDS = 20.0
"""A launcher observes its program for about five seconds; for up to twelve where the computer is busy or py-spy does not respond."""

_START_SECONDS, _START_SECONDS_PER_TASK = 5.0, 0.2
"""A launcher that the run before has stopped ends within this time, also where many end at once."""

_Response = TypeVar("_Response")


class ControllerApi(Protocol):
    """How the controller is called (see `agent.wire.rpc`)."""

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """One call."""

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One call with JSON both ways."""


class RunReceiver(ControllerApi, Protocol):
    """A controller that gets runs."""

    def put_run(self, run: dict[str, Any], code: str, archive: bytes) -> dict[str, Any]:
        """Submit a run, after its code where `archive` is not empty."""


def submit(
    controller: RunReceiver, props: RunProps, run: RunSpec, seconds: float = _CONTROLLER_SECONDS
) -> dict[str, Any]:
    """Submit code and run, as soon as the controller responds; its response.

    Raises:
        BackendError: it does not respond within so many seconds, or refuses the run.
    """
    name = props["cluster"]["name"]
    archive = _archive(props) if run.code else b""
    responses: list[dict[str, Any]] = []

    def submitted() -> bool:
        responses.append(controller.put_run(run.to_dict(), run.code, archive))
        return True

    try:
        wait_for(submitted, f"the controller of {name} did not respond", seconds)
    except CallError as error:
        raise BackendError(f"{name}: {error}") from None
    return responses[-1]


def start_launchers(controller: ControllerApi, submitted_at: float, start: Callable[[Sequence[str]], None]) -> None:
    """Start the launchers that have exited and have something to do in the run that was submitted at that time. A launcher that
    the run before has just stopped still lives for a moment, so this waits until each has reported to the controller again.
    `start` ignores launchers that run."""
    silent = [name for name, task in _tasks(controller).items() if task.is_auxiliary or task.state not in FINAL]
    deadline = time.monotonic() + _START_SECONDS + _START_SECONDS_PER_TASK * len(silent)
    while silent and time.monotonic() < deadline:
        start(silent)
        time.sleep(_POLL_SECONDS)
        reported = _tasks(controller)
        silent = [name for name in silent if name in reported and reported[name].seen < submitted_at]


def view(controller: ControllerApi, request: ViewRequest) -> RecordView:
    """The controller's view of the current run.

    Raises:
        OSError, CallError: the controller does not respond, or not in a way that this version understands.
    """
    return understood(RecordView.from_dict, controller.json("POST", "/view", request.to_dict()))


def understood(parse: Callable[[dict[str, Any]], _Response], response: dict[str, Any]) -> _Response:
    """A response of the controller, which may be of another version.

    Raises:
        CallError: this version does not understand it.
    """
    try:
        return parse(response)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        versions = f"protocol {response.get('protocol', 0)}; this version has {PROTOCOL}"
        raise CallError(
            f"the controller is of another version of tfdeploy ({versions}): {error!r}. "
            "`pulumi up` updates the cluster; the version that created it can observe it"
        ) from None


def _tasks(controller: ControllerApi) -> Mapping[str, TaskState]:
    run = view(controller, ViewRequest()).run_state
    return run.tasks if run else {}


def stop(controller: ControllerApi, has_ended: Callable[[], bool], seconds: float, to_move: bool = False) -> bool:
    """Stop the run, by request or `to_move` it; whether all its tasks have stopped, with their whole output and the artifacts in the
    record. `has_ended` returns whether no launcher is left to wait for. The tasks may take so many seconds; while artifacts are
    uploaded, longer. A task on a machine that is lost never stops, so that an upload that has ended is not waited for.

    Raises:
        BackendError: `pulumi` has received a signal meanwhile.
    """
    wait = _StopWait(controller, has_ended, seconds)
    with suppress(OSError, CallError, BackendError):
        controller.json("POST", "/stop", {"to_move": True} if to_move else {})
        wait_until(wait.is_over, math.inf, _POLL_SECONDS, _LONGEST_PAUSE)
    if is_cancelled() and not wait.has_stopped:
        raise BackendError("a signal has ended the wait for the tasks, which were told to stop. Run the command again.")
    return wait.has_stopped


class _StopWait:
    """The wait for the tasks of a run that stops. It prints what it waits for, and for how long at most."""

    def __init__(self, controller: ControllerApi, has_ended: Callable[[], bool], seconds: float) -> None:
        self._controller, self._has_ended, self._seconds = controller, has_ended, seconds
        self._begin = time.monotonic()
        self._printed = ""
        self._is_uploading = False
        self._unfinished: Mapping[str, Any] = {}
        self.has_stopped = False

    def is_over(self) -> bool:
        """Whether the tasks have stopped, or are not waited for any longer."""
        with suppress(OSError):
            response = self._controller.json("GET", "/stopped")
            self._is_uploading = response.get("uploading", False)
            self.has_stopped = response["stopped"] or self._has_ended()
        spent = time.monotonic() - self._begin
        if not self.has_stopped and spent >= _SILENT_SECONDS:
            with suppress(OSError, CallError):  # an agent of an earlier version does not know the call
                self._unfinished = self._controller.json("GET", "/unfinished")
            self._print(self._limit() - spent)
        return self.has_stopped or spent > self._limit() or is_cancelled()

    def _limit(self) -> float:
        if not self._is_uploading:
            return self._seconds
        from ..agent.control.artifact_uploads import MAX_SECONDS

        return self._seconds + (_UNWRITABLE_SECONDS if self._unfinished.get("problem") else MAX_SECONDS)

    def _print(self, left: float) -> None:
        text = _unfinished_text(self._unfinished, self._is_uploading)
        if text != self._printed and left > 0:
            self._printed = text
            print(f"{text}, for at most {left:.0f} s", flush=True)


def _unfinished_text(unfinished: Mapping[str, Any], is_uploading: bool) -> str:
    """What a run that stops is waited for: `waiting until worker-0 has stopped`."""
    hostnames = list(unfinished.get("waits_for", ()))
    more = f" and {len(hostnames) - _SHOWN_TASKS} more" if len(hostnames) > _SHOWN_TASKS else ""
    names = ", ".join(hostnames[:_SHOWN_TASKS]) + more if hostnames else "the tasks"
    text = f"waiting until {names} {'has' if len(hostnames) == 1 else 'have'} stopped"
    if is_uploading and not hostnames:
        text = "waiting until the artifacts of the run are in its record"
    problem = unfinished.get("problem")
    return text + (f" (the record cannot be written: {problem})" if problem else "")


def await_controller(controller: ControllerApi, name: str, seconds: float = _CONTROLLER_SECONDS) -> None:
    """Wait until the controller responds.

    Raises:
        BackendError: it does not within so many seconds.
    """
    wait_for(lambda: controller.json("GET", "/stopped"), f"the controller of {name} did not respond", seconds)


def take_dumps(controller: ControllerApi, name: str, hostnames: Collection[str]) -> "Mapping[str, TaskDump]":
    """The dump of the program of each of these tasks; without those whose launcher does not send one in time.

    Raises:
        BackendError: the controller does not respond, or is older than this call.
    """
    from ..agent.model.task_dump import TaskDump  # one command asks for it

    dumps: dict[str, TaskDump] = {}
    try:
        number = controller.json("POST", "/dumps")["number"]

        def have_arrived() -> bool:
            response = controller.json("POST", "/dumps/arrived", {"number": number, "known": list(dumps)})
            dumps.update({name: understood(TaskDump.from_dict, dump) for name, dump in response["dumps"].items()})
            return dumps.keys() >= {*hostnames}

        wait_until(have_arrived, _DUMP_SECONDS, _POLL_SECONDS, _LONGEST_PAUSE)
    except OSError as error:
        raise Unreachable(
            f"the controller of {name} does not respond ({error}). `tfdeploy explain` shows why."
        ) from None
    except CallError as error:
        raise BackendError(
            f"the controller of {name} cannot ask for dumps ({error}). `pulumi up` updates it."
        ) from None
    return dumps


def stop_training(controller: ControllerApi, name: str, time_limit: float) -> None:
    """Have the controller stop the run's tasks, except auxiliary ones such as TensorBoard. `time_limit` is that of the run, in seconds,
    where that is the reason.

    Raises:
        Unreachable: it does not respond.
    """
    try:
        controller.json("POST", "/stop", {"auxiliary": False, "time_limit": time_limit})
    except (OSError, CallError) as error:
        raise Unreachable(
            f"the controller of {name} does not respond ({error}). `tfdeploy explain` shows why."
        ) from None


def _archive(props: RunProps) -> bytes:
    """The code of the run, as it was when the run was planned. It is not stored where the record should have had the run.

    Raises:
        BackendError: the folder has other code now.
    """
    from . import code_archives  # the command ships nothing

    stored = code_archives.load(props["cluster"], props["run"]["code"])
    if stored is not None:
        return stored
    from ..plan import code_bundle  # takes long to load

    without = [*(Path(path) for path in props["code_without"]), *output_files()]
    bundle = code_bundle.collect(props["cluster"]["name"], Path(props["code_folder"]), without)
    if bundle.name != props["run"]["code"]:
        raise BackendError(f"{bundle.folder} was changed after the plan was made. Run `pulumi up` again.")
    archive = code_bundle.archive(bundle)
    code_archives.store(props["cluster"], bundle.name, archive)
    return archive


def wait_for(call: Callable[[], Any], problem: str, seconds: float) -> None:
    """Wait until `call` returns a true value; an `OSError` counts as "not yet".

    Raises:
        BackendError: it does not within so many seconds, or before `pulumi` receives a signal.
    """
    has_succeeded = False

    def is_over() -> bool:
        nonlocal has_succeeded
        with suppress(OSError):
            has_succeeded = bool(call())
        return has_succeeded or is_cancelled()

    wait_until(is_over, seconds, _POLL_SECONDS, _LONGEST_PAUSE)
    if not has_succeeded:
        end = "before `pulumi` received a signal" if is_cancelled() else f"within {seconds:g} s"
        raise BackendError(f"{problem} {end}")


def now() -> str:
    """The time, in the form of Pulumi's state."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
