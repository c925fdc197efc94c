"""What the hands of every backend say to a cluster's keeper, however they reach it."""

import datetime
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from ..agent.protocol import CallError
from ..agent.states import FINAL, Task
from ..errors import BackendError
from .base import RunProps

_POLL_SECONDS = 0.05
_LONGEST_PAUSE = 1.0
"""A look that takes long, as `exec` in a container does, is not repeated without a rest."""

_KEEPER_SECONDS = 20.0
_WAKE_SECONDS = 5.0


class Keeper(Protocol):
    """The calls of `agent.protocol`."""

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """One call."""

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One call with JSON both ways."""


def give(keeper: Keeper, props: RunProps, run: dict[str, Any], seconds: float = _KEEPER_SECONDS) -> dict[str, Any]:
    """Hand over code and run, once the keeper answers; its answer.

    Raises:
        BackendError: it does not answer within so many seconds, or refuses the run.
    """
    name = props["cluster"]["name"]
    archive = _archive(props) if run["code"] else b""
    answers: list[dict[str, Any]] = []

    def handed_over() -> bool:
        if archive:
            keeper.call("PUT", f"/code/{run['code']}", archive)
        answers.append(keeper.json("PUT", "/run", run))
        return True

    try:
        wait_for(handed_over, f"the keeper of {name} did not answer", seconds)
    except CallError as error:
        raise BackendError(f"{name}: {error}") from None
    return answers[-1]


def wake(keeper: Keeper, given: dict[str, Any], start: Callable[[Sequence[str]], None]) -> None:
    """Start the launchers that have ended and have something to do, once the run has been given (`given` is the answer). One that
    the run before has just told to end still lives, for a moment: so each is waited for until it has spoken with the keeper again.
    `start` leaves alone what runs."""
    asked = {name: Task.from_dict(task) for name, task in _tasks(keeper).items()}
    deaf = [name for name, task in asked.items() if task.looks_on or task.state not in FINAL]
    deadline = time.monotonic() + _WAKE_SECONDS
    while deaf and time.monotonic() < deadline:
        start(deaf)
        time.sleep(_POLL_SECONDS)
        tasks = _tasks(keeper)
        deaf = [name for name in deaf if name in tasks and tasks[name]["seen"] < given["at"]]


def _tasks(keeper: Keeper) -> dict[str, Any]:
    found: dict[str, Any] = keeper.json("POST", "/look", {"log_lines": 0, "metrics": {}})["job"]["tasks"]
    return found


def stop(keeper: Keeper, over: Callable[[], bool], seconds: float) -> bool:
    """Have the job stopped; whether all its tasks have, with all that they printed in the record. `over` says whether no
    launcher is left to wait for."""
    with suppress(OSError, CallError, BackendError):
        keeper.json("POST", "/stop", {})
        stopped = "the tasks did not stop"
        wait_for(lambda: keeper.json("GET", "/stopped")["stopped"] or over(), stopped, seconds)
        return True
    return False


def _archive(props: RunProps) -> bytes:
    from .. import bundle  # the command comes this way too, and ships nothing

    without = [Path(path) for path in props["code_without"]]
    found = bundle.collect(props["cluster"]["name"], Path(props["code_folder"]), without)
    if found.name != props["run"]["code"]:
        raise BackendError(f"{found.folder} was changed after the plan was made. Run `pulumi up` again.")
    return bundle.archive(found)


def wait_for(call: Callable[[], Any], otherwise: str, seconds: float) -> None:
    """Wait until `call` is true; an `OSError` of it is taken for not yet.

    Raises:
        BackendError: it was not within so many seconds.
    """
    deadline = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        with suppress(OSError):
            if call():
                return
        now = time.monotonic()
        if now > deadline:
            raise BackendError(f"{otherwise} within {seconds:g} s")
        time.sleep(min(max(_POLL_SECONDS, now - begun), _LONGEST_PAUSE))


def now() -> str:
    """This moment, as the state has it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
