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
from pathlib import Path

import pulumi

from ..agent.polling import pause_after
from ..agent.record.record import RecordFormatError, ViewRequest
from ..agent.run_state import FAILED, RUNNING, TENSORBOARD, UNKNOWN
from ..backends.base import Backend, ClusterRef, ObservedState
from ..errors import BackendError
from ..plan.plan import Plan
from ..spec.cluster import ClusterSpec
from ..units import text_of_number, wrapped
from .arrival import Arrival
from .diagnosis import way_on
from .expected import expected_state
from .live_display import MIN_COLUMNS, LiveDisplay
from .live_rows import LiveRows
from .report import Report, report
from .run_outcomes import observed_source, store_outcomes
from .summary import next_steps, progress_of, summary
from .tables import screen_text
from .trouble import Trouble
from .update_failure import fail_update

_POLL_SECONDS, _LONGEST_PAUSE = 1.0, 3.0
"""The shortest and the longest pause between two observations. The rows of Pulumi's display change once a second."""

_PAUSE_FACTOR = 10.0
"""A pause is so many times as long as the observation before it. Observations take processor time from a training on the same machine:
on Docker, when each started a command, one each second took 7 % of it (docs/decisions/speed.md)."""

_PROGRESS_LINES = 20
_OUTCOME_SECONDS = 2.0
"""So long an update reads metrics of earlier runs that nothing has read before."""

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
    is_gone: bool = False
    """Whether nothing of the cluster runs any more, and nothing starts it again by itself."""
    warned: set[str] = field(default_factory=set)
    """What was printed while the update waited: each sentence once."""
    _trouble: Trouble = field(default_factory=Trouble)
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
        self._trouble.note(observed_state, self.backend.heal_command, time.monotonic())
        self.is_gone = self._trouble.is_final and not latest.decided
        if not self.is_preview and (latest.finished or not self._has_outcomes):
            self._has_outcomes = True
            store_outcomes(observed_source(self.cluster, observed_state, self.spec.metrics), _OUTCOME_SECONDS)
        return latest

    @property
    def trouble(self) -> str:
        """Why the cluster has not been observable for a while, and what to do; empty where it is."""
        return self._trouble.text

    @property
    def was_well(self) -> bool:
        """Whether this update has seen the cluster without anything wrong: what happened then is this update's."""
        return self._trouble.was_well

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

    Where all tasks serve, it ends when all of them run; and it ends when nothing of the cluster is left. `show` gets a row of Pulumi's
    display and its new text. The observation has its own thread, so that several clusters are waited for in parallel.
    """
    deadline = time.monotonic() + seconds
    loop = asyncio.get_running_loop()
    rows = LiveRows()
    with ThreadPoolExecutor(1, thread_name_prefix=f"tfdeploy-{watch.spec.name}") as executor:
        while True:
            begin = time.monotonic()
            latest = await loop.run_in_executor(executor, copy_context().run, watch.look)
            end = time.monotonic()
            left = deadline - end
            is_over = is_enough(latest) or over(watch.spec, latest) or watch.is_gone
            if is_over or left <= 0 or watch.detached.is_set():
                return latest
            _print_changes(watch, latest)
            if show is not None:
                for row, text in rows.changes(latest, time.monotonic()).items():
                    show(row, text)
            pause = pause_after(_PAUSE_FACTOR * (end - begin), _POLL_SECONDS, _LONGEST_PAUSE)
            try:
                await asyncio.wait_for(watch.detached.wait(), min(pause, left))
            except TimeoutError:
                continue


def _print_changes(watch: Watch, latest: Report) -> None:
    """What an update prints while it waits, also into a file: each sentence once."""
    if latest.time_left and "time left" not in watch.warned:
        watch.warned.add("time left")
        pulumi.log.info(f"{watch.spec.name}: {latest.sentences}")
    if watch.trouble:
        _warn_once(watch, watch.trouble, watch.trouble)
    _warn_of_program(watch, latest)


def _warn_of_program(watch: Watch, latest: Report) -> None:
    """Name each task that waits for a peer which does not respond, and each metric that `until` cannot compare."""
    for wait in latest.session_waits:
        _warn_once(watch, wait.hostname, f"{wait.text} {wait.remedy}")
    for problem in latest.until_problems:
        _warn_once(watch, problem.metric, f"{problem.text} {problem.remedy}")


def _warn_once(watch: Watch, key: str, text: str) -> None:
    if key not in watch.warned:
        watch.warned.add(key)
        pulumi.log.warn(f"{watch.spec.name}: {text}")


def over(spec: ClusterSpec, latest: Report) -> bool:
    """Whether there is nothing more to wait for."""
    is_serving = spec.standalone_servers and all(
        row["status"] == RUNNING for row in latest.tasks if row["job"] != TENSORBOARD
    )
    return is_serving or (latest.finished and not latest.is_uploading)


async def observed(watch: Watch, submitted_at: str | None) -> Report:
    """The report for the component's outputs; `submitted_at` is ISO 8601, and None under the mocks of a user's test.

    A preview observes once, and so does a program under mocks. An update waits for at most `wait`. It fails when a run fails that it
    has submitted or waited for.
    """
    if pulumi.runtime.is_dry_run() or submitted_at is None:
        return await follow(replace(watch, is_preview=True), 0.0)
    submitted = datetime.datetime.fromisoformat(submitted_at).timestamp()
    latest = first = await follow(watch, 0.0)
    if watch.way_back:
        await _arrived(watch, submitted)
    if not over(watch.spec, first) and watch.spec.wait > 0:
        # Logged before the wait: after Ctrl-C, Pulumi passes on no further messages of the program.
        detach = "Ctrl-C detaches: the training continues, and `pulumi up` observes it again"
        limit = f"{watch.spec.name}: waiting at most {text_of_number(watch.spec.wait)} s for the run to end."
        pulumi.log.info(LiveDisplay().fitted(f"{limit} {detach}."))
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
        raise pulumi.RunError(_not_arrived(watch, latest, arrival.problem))
    if latest.state == RUNNING:
        step = "" if arrival.step is None else f" at step {arrival.step:,.0f}"
        pulumi.log.info(f"{watch.spec.name}: the run continues{step} on {watch.spec.backend}.")


def _not_arrived(watch: Watch, latest: Report, problem: str = "") -> str:
    """Why the update fails, and how to return."""
    backend = watch.spec.backend
    reason = problem if latest.state == RUNNING and problem else latest.reason
    return (
        f"{watch.spec.name}: the run does not train on {backend}: it is {latest.state}{': ' if reason else ''}{reason}."
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
    name, has_failed = watch.spec.name, latest.state == FAILED
    display = LiveDisplay()
    width = display.text_columns
    tables = screen_text(latest.machines, latest.tasks, width, time.time() if width else 0.0)
    progress = replace(progress_of(latest), losses=())  # of the last lines alone a curve is flat
    known = summary(latest, progress, str(Path.home()), width, with_cause=not has_failed)
    more = [] if has_failed else wrapped(next_steps(latest, watch.spec.standalone_servers), width)
    pulumi.log.info("\n".join([name, tables, "", known, *more]).rstrip())
    if is_new:
        _warn_of_program(watch, latest)
    if watch.is_gone and watch.was_well:
        pulumi.log.error(f"{name}: {watch.trouble}")
        fail_update(name, f"{name}: {watch.trouble}")
    elif has_failed:
        sentence = f"{name}: the run failed: {latest.reason}."
        text = f"{sentence}{_last_lines(latest)}"
        if is_new:
            pulumi.log.error(display.fitted(f"{text}\n{way_on(latest.run)}", "error: "))
            fail_update(name, sentence)
        else:
            again = f"{text}\nThis is the same run as before. {way_on(latest.run)}"
            pulumi.log.warn(display.fitted(again, "warning: "))
    elif latest.state == UNKNOWN:
        pulumi.log.warn(f"{name}: {latest.reason}. `{watch.backend.heal_command}` recreates what is missing.")
    elif not latest.decided and not watch.spec.standalone_servers and watch.spec.wait > 0:
        pulumi.log.info(f"{name}: still {latest.state} after `wait`; run `pulumi up` to check again.")


def _last_lines(latest: Report) -> str:
    text = ""
    status = {row["hostname"]: row["status"] for row in latest.tasks}
    for failed in latest.failures:
        lines = "".join(f"\n  {line}" for line in failed.lines)
        how = f"{status.get(failed.hostname, FAILED)}{failed.place}"
        text += f"\n{failed.hostname} {how}. Its last lines:{lines or ' none'}\n{failed.remedy}"
    return text
