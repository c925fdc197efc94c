"""The calls of every backend to a cluster's controller, however it is reached."""

import datetime
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .. import receipts
from ..agent.polling import wait_until
from ..agent.record import RecordView, ViewRequest
from ..agent.rpc import PROTOCOL, CallError
from ..agent.run_spec import RunSpec
from ..agent.run_state import FINAL, TaskState
from ..agent.uploads import MAX_SECONDS
from ..errors import BackendError, Unreachable
from ..paths import output_files
from .base import RunProps

_POLL_SECONDS = 0.05
_LONGEST_PAUSE = 1.0
"""A call that takes long, such as the first in a container, is not repeated without a pause."""

_CONTROLLER_SECONDS = 20.0
_START_SECONDS, _START_SECONDS_PER_TASK = 5.0, 0.2
"""A launcher that the run before has stopped ends within this time, also where many end at once."""


_Response = TypeVar("_Response")


class ControllerApi(Protocol):
    """How the controller is called (see `agent.rpc`)."""

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
    uploaded, longer. A task on a machine that is lost never stops, so that an upload that has ended is not waited for."""
    state, begin = {"stopped": False, "uploading": False}, time.monotonic()

    def is_decided() -> bool:
        with suppress(OSError):
            response = controller.json("GET", "/stopped")
            state["uploading"] = response.get("uploading", False)
            state["stopped"] = response["stopped"] or has_ended()
        limit = seconds + (MAX_SECONDS if state["uploading"] else 0.0)
        return state["stopped"] or time.monotonic() - begin > limit

    with suppress(OSError, CallError, BackendError):
        controller.json("POST", "/stop", {"to_move": True} if to_move else {})
        wait_until(is_decided, math.inf, _POLL_SECONDS, _LONGEST_PAUSE)
    return state["stopped"]


def await_controller(controller: ControllerApi, name: str, seconds: float = _CONTROLLER_SECONDS) -> None:
    """Wait until the controller responds.

    Raises:
        BackendError: it does not within so many seconds.
    """
    wait_for(lambda: controller.json("GET", "/stopped"), f"the controller of {name} did not respond", seconds)


def note_move(controller: ControllerApi, to: str) -> None:
    """Store in the record that the backend `to` has it now. An agent of an earlier version does not."""
    with suppress(OSError, CallError):
        controller.json("POST", "/moved", {"to": to})


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
    stored = receipts.load_code(props["run"]["code"])
    if stored is not None:
        return stored
    from ..plan import code_bundle  # takes long to load, and the command ships nothing

    without = [*(Path(path) for path in props["code_without"]), *output_files()]
    bundle = code_bundle.collect(props["cluster"]["name"], Path(props["code_folder"]), without)
    if bundle.name != props["run"]["code"]:
        raise BackendError(f"{bundle.folder} was changed after the plan was made. Run `pulumi up` again.")
    archive = code_bundle.archive(bundle)
    receipts.store_code(bundle.name, archive)
    return archive


def wait_for(call: Callable[[], Any], problem: str, seconds: float) -> None:
    """Wait until `call` returns a true value; an `OSError` counts as "not yet".

    Raises:
        BackendError: it does not within so many seconds.
    """

    def succeeds() -> bool:
        try:
            return bool(call())
        except OSError:
            return False

    if not wait_until(succeeds, seconds, _POLL_SECONDS, _LONGEST_PAUSE):
        raise BackendError(f"{problem} within {seconds:g} s")


def now() -> str:
    """The time, in the form of Pulumi's state."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
