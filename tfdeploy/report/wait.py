"""Observation of a cluster during `pulumi up`: once, or until its run has ended or a timeout has passed."""

import asyncio
import datetime
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial

import pulumi

from ..agent.polling import pause_after
from ..agent.record import RecordFormatError, ViewRequest
from ..agent.run_state import FAILED, RUNNING, TENSORBOARD, UNKNOWN
from ..backends.base import Backend, ClusterRef, ObservedState
from ..errors import BackendError
from ..plan.plan import Plan
from ..spec.cluster import ClusterSpec
from ..units import text_of_number
from .arrival import Arrival
from .diagnosis import way_on
from .expected import expected_state
from .live_display import MIN_COLUMNS, LiveDisplay
from .live_rows import LiveRows
from .report import Report, report
from .run_outcomes import observed_source, store_outcomes
from .tables import status_text
from .update_failure import fail_update

_POLL_SECONDS, _LONGEST_PAUSE = 1.0, 3.0
"""The shortest and the longest pause between two observations. The rows of Pulumi's display change once a second."""

_PAUSE_FACTOR = 10.0
"""A pause is so many times as long as the observation before it. Observations take processor time from a training on the same machine:
on Docker, when each started a command, one each second took 7 % of it (decision 0016)."""

_PROGRESS_LINES = 20
_INDENT = 4
"""Pulumi indents messages by so many columns."""

_OUTCOME_SECONDS = 2.0
"""So long an update reads metrics of earlier runs that nothing has read before."""

_LEADERS = ("chief-0", "worker-0", "gpu-worker-0")
"""The first of these that the cluster has is the task that prints most about the training."""

_ARRIVAL_SECONDS = 600.0
"""So long an update waits at least for a run that has moved to train: until then both places exist."""

_WAIT_TASK = "tfdeploy-wait"
"""The name of the asyncio task of each cluster that is waited for."""


@dataclass
class Watch:
    """What is needed to observe one cluster during one update."""

    backend: Backend
    cluster: ClusterRef
    spec: ClusterSpec
    plan: Plan
    token: str = ""
    detached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the user has pressed Ctrl-C."""
    begun: float = field(default_factory=time.time)
    """When this update or preview began: a run that was submitted later is this update's."""
    is_preview: bool = False
    rows: Mapping[str, pulumi.Resource] = field(default_factory=dict)
    """The resources that show the progress in their rows while an update waits: the tasks by hostname, and two more."""
    way_back: str = ""
    """What to do if the run does not train at its new place: on another backend, or on other machines. Empty where it does not move."""
    _has_outcomes: bool = False
    """Whether the outcomes of earlier runs were stored."""

    def look(self) -> Report:
        """The present report.

        Raises:
            BackendError: the record was written by another version.
        """
        lines = max(self.spec.log_lines, _PROGRESS_LINES)
        observed_state = self._observe(ViewRequest(lines, dict(self.spec.metrics)))
        latest = report(expected_state(self.plan, self.spec), observed_state)
        if not self.is_preview and (latest.finished or not self._has_outcomes):
            self._has_outcomes = True
            store_outcomes(observed_source(self.cluster, observed_state, self.spec.metrics), _OUTCOME_SECONDS)
        return latest

    def _observe(self, request: ViewRequest) -> ObservedState:
        try:
            return self.backend.runner.observe(self.cluster, self.token, request, self.is_preview)
        except RecordFormatError as error:
            raise BackendError(str(error)) from None


async def follow(
    watch: Watch,
    seconds: float,
    show: Callable[[str, str], None] | None = None,
    is_enough: Callable[[Report], bool] = lambda _: False,
) -> Report:
    """Observe until the run has ended and all tasks but TensorBoard with it, the report `is_enough`, or `seconds` have passed; the last
    report.

    Where all tasks serve, it ends when all of them run. `show` gets a row of Pulumi's display and its new text. The observation has
    its own thread, so that several clusters are waited for in parallel.
    """
    deadline = time.monotonic() + seconds
    loop = asyncio.get_running_loop()
    rows = LiveRows()
    warned: set[str] = set()
    with ThreadPoolExecutor(1, thread_name_prefix=f"tfdeploy-{watch.spec.name}") as executor:
        while True:
            begin = time.monotonic()
            latest = await loop.run_in_executor(executor, copy_context().run, watch.look)
            end = time.monotonic()
            left = deadline - end
            if is_enough(latest) or over(watch.spec, latest) or left <= 0 or watch.detached.is_set():
                return latest
            _warn_of_waits(watch, latest, warned)
            if show is not None:
                for row, text in rows.changes(latest, time.monotonic()).items():
                    show(row, text)
            pause = pause_after(_PAUSE_FACTOR * (end - begin), _POLL_SECONDS, _LONGEST_PAUSE)
            try:
                await asyncio.wait_for(watch.detached.wait(), min(pause, left))
            except TimeoutError:
                continue


def _warn_of_waits(watch: Watch, latest: Report, warned: set[str]) -> None:
    """Name each task that waits for a peer which does not respond, once."""
    for wait in latest.session_waits:
        if wait.hostname not in warned:
            warned.add(wait.hostname)
            pulumi.log.warn(f"{watch.spec.name}: {wait.text} {wait.remedy}")


def over(spec: ClusterSpec, latest: Report) -> bool:
    """Whether there is nothing more to wait for."""
    is_serving = spec.standalone_servers and all(
        row["status"] == RUNNING for row in latest.tasks if row["job"] != TENSORBOARD
    )
    return is_serving or (latest.finished and not latest.is_uploading)


async def observed(watch: Watch, submitted_at: str) -> Report:
    """The report for the component's outputs; `submitted_at` is ISO 8601.

    A preview observes once. An update waits for at most `wait`. It fails when a run fails that it has submitted or waited for.
    """
    if pulumi.runtime.is_dry_run():
        return await follow(replace(watch, is_preview=True), 0.0)
    submitted = datetime.datetime.fromisoformat(submitted_at).timestamp()
    latest = first = await follow(watch, 0.0)
    if watch.way_back:
        await _arrived(watch, submitted)
    if not over(watch.spec, first) and watch.spec.wait > 0:
        # Logged before the wait: after Ctrl-C, Pulumi passes on no further messages of the program.
        detach = "Ctrl-C detaches: the training continues, and `pulumi up` observes it again"
        pulumi.log.info(
            f"{watch.spec.name}: waiting at most {text_of_number(watch.spec.wait)} s for the run to end. {detach}."
        )
        async with _detachable(watch):
            latest = await follow(watch, watch.spec.wait, _row_writer(watch))
    if watch.way_back and latest.state == FAILED:
        raise pulumi.RunError(_not_arrived(watch, latest))
    _log_result(watch, latest, is_new=not first.decided or submitted >= watch.begun)
    return latest


async def _arrived(watch: Watch, submitted: float) -> None:
    """Wait until a run that has moved trains here. Unlike a run that fails later, this is an error of the program, because after one
    Pulumi deletes nothing; a failure at the end of the program comes after that.

    Raises:
        RunError: it does not train within `wait`, and at least `_ARRIVAL_SECONDS`.
    """
    arrival = Arrival(submitted)
    trains = partial(arrival.trains, needs_step=watch.spec.wait > 0)
    latest = await follow(watch, max(watch.spec.wait, _ARRIVAL_SECONDS), _row_writer(watch), trains)
    if not trains(latest):
        raise pulumi.RunError(_not_arrived(watch, latest))
    if latest.state == RUNNING:
        step = "" if arrival.step is None else f" at step {arrival.step:,.0f}"
        pulumi.log.info(f"{watch.spec.name}: the run continues{step} on {watch.spec.backend}.")


def _not_arrived(watch: Watch, latest: Report) -> str:
    """Why the update fails, and how to return."""
    backend = watch.spec.backend
    return (
        f"{watch.spec.name}: the run does not train on {backend}: it is {latest.state}{': ' if latest.reason else ''}{latest.reason}."
        f"{_last_lines(latest)}\n{watch.way_back}\n"
        f"To try again on {backend}: pulumi up"
    )


def _row_writer(watch: Watch) -> Callable[[str, str], None]:
    """Writes texts into the rows of Pulumi's display, where that has room for them. Elsewhere each would be a line of output."""
    display = LiveDisplay()

    def write(row: str, text: str) -> None:
        if row in watch.rows and display.columns >= MIN_COLUMNS:
            pulumi.log.info(text, watch.rows[row], ephemeral=True)

    return write


@asynccontextmanager
async def _detachable(watch: Watch) -> AsyncIterator[None]:
    """Meanwhile Ctrl-C ends the waits of all clusters of this event loop, and not the training."""
    loop = asyncio.get_running_loop()
    is_main_thread = threading.current_thread() is threading.main_thread()
    waiting = loop.create_task(_set_when_cancelled(watch.detached), name=_WAIT_TASK)
    if is_main_thread:
        loop.add_signal_handler(signal.SIGINT, _detach)
    try:
        yield
    finally:
        waiting.cancel()
        if is_main_thread and not [task for task in _waits() if task is not waiting]:
            loop.remove_signal_handler(signal.SIGINT)


async def _set_when_cancelled(event: asyncio.Event) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        event.set()


def _waits() -> list["asyncio.Task[None]"]:
    return [task for task in asyncio.all_tasks() if task.get_name() == _WAIT_TASK and not task.done()]


def _detach() -> None:
    for task in _waits():
        task.cancel()


def _log_result(watch: Watch, latest: Report, is_new: bool) -> None:
    """Log the report. `is_new`: this update has submitted the run or waited for it, so that its failure is the update's."""
    name = watch.spec.name
    width = max(0, LiveDisplay().columns - _INDENT)
    tables = status_text(latest.machines, latest.tasks, width, time.time())
    pulumi.log.info(f"{name}\n{tables}\n\n{latest.sentences}{_further(latest)}")
    if latest.state == FAILED:
        sentence = f"{name}: the run failed: {latest.reason}."
        text = f"{sentence}{_last_lines(latest)}"
        if is_new:
            pulumi.log.error(f"{text}\n{way_on(latest.run)}")
            fail_update(name, sentence)
        else:
            pulumi.log.warn(f"{text}\nThis is the same run as before. {way_on(latest.run)}")
    elif latest.state == UNKNOWN:
        pulumi.log.warn(f"{name}: {latest.reason}. `{watch.backend.heal_command}` recreates what is missing.")
    elif not latest.decided and not watch.spec.standalone_servers and watch.spec.wait > 0:
        pulumi.log.info(f"{name}: still {latest.state} after `wait`; run `pulumi up` to check again.")


def _further(latest: Report) -> str:
    """How to look further; nothing for a run that failed, because the error has it."""
    if latest.state == FAILED or not latest.tasks:
        return ""
    names = [row["hostname"] for row in latest.tasks]
    leader = next((name for name in _LEADERS if name in names), names[0])
    watch = "" if latest.decided else " --watch"
    return f"\nMore: `tfdeploy status{watch}`, `tfdeploy logs {leader}`, `tfdeploy report` (a page)."


def _last_lines(latest: Report) -> str:
    text = ""
    status = {row["hostname"]: row["status"] for row in latest.tasks}
    for failed in latest.failures:
        lines = "".join(f"\n  {line}" for line in failed.lines)
        text += f"\n{failed.hostname} {status.get(failed.hostname, FAILED)}. Its last lines:{lines or ' none'}\n{failed.remedy}"
    return text
