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
from weakref import WeakKeyDictionary

import pulumi

from ..agent.model.run_state import FAILED, RUNNING, STOPPED, SUCCEEDED, TENSORBOARD, UNKNOWN
from ..agent.record.progress import Progress
from ..agent.record.record import RecordFormatError, ViewRequest
from ..agent.record.stored_artifact import CHECKPOINT
from ..agent.system.polling import pause_after
from ..backends.backend import Backend
from ..backends.base import ClusterRef
from ..errors import BackendError
from ..outputs import TaskRow
from ..plan.plan import Plan
from ..spec.cluster import ClusterSpec
from ..units import dollars, text_of_number, wrapped
from .diagnosis import STARTS_AGAIN, Trouble, from_checkpoint, trouble_of
from .expected_state import expected_state
from .live_display import MIN_COLUMNS, WATCH_COMMAND, LiveDisplay
from .program_problems import is_noise
from .progress import progress_text
from .report import Report, report
from .run_history import checkpoint_step
from .summary import next_steps, summary
from .tables import screen_text
from .update_exit_code import fail_update

_POLL_SECONDS, _LONGEST_PAUSE = 1.0, 3.0
"""The shortest and the longest pause between two observations. The rows of Pulumi's display change once a second."""

_PAUSE_FACTOR = 10.0
"""A pause is so many times as long as the observation before it. Observations take processor time from a training on the same machine:
on Docker, when each started a command, one each second took 7 % of it (design/speed.md)."""

_PROGRESS_LINES = 20
_ARRIVAL_SECONDS = 600.0
"""So long an update waits at least for a run that has moved to train: until then both places exist."""

_waits: WeakKeyDictionary[asyncio.AbstractEventLoop, list[asyncio.Event]] = WeakKeyDictionary()
"""Event loop to what Ctrl-C sets for each cluster that is waited for."""


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
    missing: str = ""
    """What the cluster lacks while its run is open, so that the update fails, in sentences."""
    is_gone: bool = False
    """Whether nothing of the cluster runs any more, and nothing starts it again by itself."""
    warned: set[str] = field(default_factory=set)
    """What was printed while the update waited: each sentence once."""
    trouble: Trouble = field(default_factory=Trouble)
    """Why the cluster has not been observable for a while."""

    def look(self) -> Report:
        """The present report.

        Raises:
            BackendError: the record was written by another version.
        """
        request = ViewRequest(max(self.spec.log_lines, _PROGRESS_LINES))
        try:
            observed_state = self.backend.runner.observe(self.cluster, self.token, request, self.is_preview)
        except RecordFormatError as error:
            raise BackendError(str(error)) from None
        latest = report(expected_state(self.plan, self.spec), observed_state)
        self.trouble.note(observed_state, self.backend.restore_command, time.monotonic())
        is_open = observed_state.missing and not latest.decided
        self.missing = " ".join(trouble_of(observed_state, self.backend.restore_command)) if is_open else ""
        self.is_gone = self.trouble.is_final and not latest.decided
        return latest


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
    _warn_once(watch, watch.trouble.text, watch.trouble.text)
    _warn_of_program(watch, latest)


def _warn_of_program(watch: Watch, latest: Report) -> None:
    """Name each task that waits for a peer which does not respond, and each metric that `until` cannot compare."""
    for problem in latest.problems:
        _warn_once(watch, problem.about or problem.text.partition(":")[0], problem.sentences)


def _warn_once(watch: Watch, key: str, text: str) -> None:
    if text and key not in watch.warned:
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

    A preview observes once, and so does a program under mocks. An update waits for at most `wait`, and fails if the run has failed.
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
    return replace(latest, withheld=_withheld(watch.spec, latest))


def _withheld(spec: ClusterSpec, latest: Report) -> str:
    """Why what depends on the cluster is not created; empty where it is: after the success of the run, where all tasks serve, and where
    the update does not wait for a run that may still succeed."""
    what = f"{spec.name}: what depends on this cluster was neither created nor updated"
    if latest.decided and latest.state != SUCCEEDED:
        verb = "was " if latest.state == STOPPED else ""
        return f"{what}, because its run {verb}{latest.state}."
    if latest.decided or spec.wait == 0 or over(spec, latest):
        return ""
    remedy = "Run `pulumi up` when it has succeeded, or set a longer `wait`."
    other = "What does not need its success takes an output, such as `endpoints`, instead of `depends_on`."
    return f"{what}: its run is still {latest.state} after `wait`. {remedy} {other}"


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
    waits = _waits.setdefault(loop, [])
    waits.append(watch.detached)

    def detach() -> None:
        for detached in waits:
            detached.set()

    is_main_thread = threading.current_thread() is threading.main_thread()
    if is_main_thread:
        loop.add_signal_handler(signal.SIGINT, detach)
    try:
        yield
    finally:
        waits.remove(watch.detached)
        if is_main_thread and not waits:
            loop.remove_signal_handler(signal.SIGINT)


def _log_result(watch: Watch, latest: Report, is_new: bool) -> None:
    """Log the report. `is_new`: this update has submitted the run or waited for it."""
    name, has_failed = watch.spec.name, latest.state == FAILED
    display = LiveDisplay()
    width = display.text_columns
    tables = screen_text(latest.machines, latest.tasks, width, time.time() if width else 0.0)
    shown = latest
    if is_new and latest.decided and not latest.failures:
        # The sentences after the first one are the warnings that follow.
        shown = replace(latest, sentences=latest.sentences.partition("\n")[0])
    facts = summary(shown, str(Path.home()), width, in_update=True)
    more = [] if has_failed else wrapped(next_steps(latest, watch.spec.standalone_servers), width)
    pulumi.log.info("\n".join([name, tables, "", facts, *more]).rstrip())
    if is_new:
        _warn_of_program(watch, latest)
    if watch.is_gone and watch.trouble.was_well:
        sentence = f"{name}: {watch.trouble.text}"
        pulumi.log.error(sentence)
        fail_update(name, sentence)
    elif watch.missing:
        sentence = f"{name}: {watch.missing}"
        pulumi.log.error(display.fitted(sentence, "error: "))
        fail_update(name, sentence)
    elif has_failed:
        sentence = f"{name}: the run failed: {latest.reason}; {STARTS_AGAIN}."
        again = "" if is_new else "This update has started no run. "
        text = f"{sentence}{_last_lines(latest)}\n{again}{from_checkpoint(latest.run)}"
        if watch.spec.wait > 0:
            pulumi.log.error(display.fitted(text, "error: "))
            fail_update(name, sentence)
        else:
            pulumi.log.warn(display.fitted(text, "warning: "))
    elif latest.state == UNKNOWN:
        pulumi.log.warn(f"{name}: {latest.reason}. `{watch.backend.restore_command}` recreates what is missing.")
    elif not latest.decided and not watch.spec.standalone_servers and watch.spec.wait > 0:
        pulumi.log.info(f"{name}: still {latest.state} after `wait`; run `pulumi up` to check again.")


def _last_lines(latest: Report) -> str:
    text = ""
    for failed in latest.failures:
        lines = "".join(f"\n  {line}" for line in failed.lines)
        text += f"\n{failed.text} Its last lines:{lines or ' none'}\n{failed.remedy}"
    return text


CLUSTER_ROW, RUN_ROW = "cluster", "run"
"""The rows of a cluster that are not a task's. Those are named by their hostnames, which end with a number."""

_MIN_SECONDS = 1.0
_SECONDS_PER_TASK = 0.1
"""At most one message a second for each row, and ten for a cluster: Pulumi Cloud and `--event-log` store each one."""


class LiveRows:
    """The rows of a cluster."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._next_at = 0.0

    def changes(self, latest: Report, now: float) -> Mapping[str, str]:
        """The rows with another text than the last time; none if that was a moment ago. `now` is a clock that does not step."""
        if now < self._next_at:
            return {}
        self._next_at = now + max(_MIN_SECONDS, _SECONDS_PER_TASK * len(latest.tasks))
        texts = {row["hostname"]: self._task_text(row, latest) for row in latest.tasks}
        spent, per_hour = latest.cost.get("spent"), latest.cost.get("per_hour")
        costs = [
            "" if spent is None else f"{dollars(spent)} so far",
            "" if per_hour is None else f"{dollars(per_hour)}/h",
        ]
        cluster = (latest.state, ", ".join(filter(None, costs)), latest.reason, latest.time_left)
        texts |= {CLUSTER_ROW: "  ".join(filter(None, cluster)), RUN_ROW: f"more: {WATCH_COMMAND}"}
        changed = {name: text for name, text in texts.items() if text != self._shown.get(name)}
        self._shown |= changed
        return changed

    def _task_text(self, row: TaskRow, latest: Report) -> str:
        """`running  1200/2000  20s left  41.0 steps/s  loss 0.31 ▇▅▃▂▁`; the last line of a task that prints no steps."""
        if row["status"] != RUNNING:
            return row["status"]
        progress = latest.progress.get(row["hostname"], Progress())
        if progress.step is not None or progress.loss is not None:
            return f"{RUNNING}  {progress_text(progress)}"
        lines = [text for _, text in latest.timed.get(row["hostname"], []) if not is_noise(text)]
        return "  ".join(filter(None, [RUNNING, *lines[-1:]]))


class Arrival:
    """What was observed of a run since it was submitted at a new place. `submitted` is that moment, in seconds since 1970."""

    def __init__(self, submitted: float) -> None:
        self._submitted = submitted
        self._before: float | None = None
        self.step: float | None = None
        """The first step that was logged since then, once `trains`; None for a program that prints none."""
        self.problem = ""
        """Why the last step does not show that it trains."""

    def trains(self, latest: Report, needs_step: bool = True) -> bool:
        """Whether the run has succeeded, or runs with a step since then that it cannot have without its checkpoint. That it runs is
        enough where no step is needed, and for a program that prints none."""
        if latest.state != RUNNING:
            return latest.state == SUCCEEDED
        stepped = [item for item in latest.progress.values() if item.stepped_at is not None]
        later = [item for item in stepped if item.stepped_at and item.stepped_at >= self._submitted]
        if self.step is None:
            self.step = min((item.first for item in later if item.first is not None), default=None)
        if self._before is None:
            before = [item.before if item in later else item.step for item in stepped]
            self._before = next((step for step in before if step is not None), None)
        step = next((item.step for item in later), None)
        least = _least_step(latest, self._before or 0.0)
        self.problem = ""
        if step is not None and step < least:
            self.problem = f"it logs step {step:,.0f}, and would continue at {least:,.0f} or later"
        return not needs_step or (self._before is None if step is None else step >= least)


def _least_step(latest: Report, before: float) -> float:
    """The step that shows that a run which had logged the step `before` has continued: that of its checkpoint, if the names of
    checkpoints count the same steps. A counter that begins at 0 shows nothing."""
    names = (row["name"] for row in latest.artifacts or () if row["kind"] == CHECKPOINT)
    steps = (step for name in names if (step := checkpoint_step(name)) is not None)
    return max((step for step in steps if step <= before), default=1.0 if before else 0.0)
