"""The controller of one cluster: receives the launchers' reports, decides, gives orders, writes the record, serves views of it.

Its memory is what the record has, so that it can be killed and restarted at any time. What follows from reports is applied and saved
for many of them at once, so that the cost of a report does not depend on the number of tasks. No order to start or to stop a
program is given before what it follows from is in the record: the state of its task, and that of the run. While the record cannot be
written, only starts wait for that.
"""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ..model import events
from ..model.events import Event
from ..model.run_spec import RunSpec
from ..model.run_state import FINAL, LauncherReport, RunState, continues
from ..model.sync import END, NOTHING, PREPARE, RUN, RUNNING, STOP, WAIT, Order
from ..record.artifact_manifest import load_manifest
from ..record.output import DIFFERS
from ..record.output_search import Found
from ..record.record import Record, RecordView, ViewRequest
from ..record.record_files import RecordList, list_files, small_file
from ..record.restorable import restorable, restored_path
from ..record.run_folders import RunRefused, train_dir
from ..system.ports import PortReservations
from ..wire.rpc import CallObsolete
from . import artifact_uploads, controller_absence, elastic, move, reconcile, until_metrics
from .clock import Clock
from .dumps import Dumps
from .journal import Journal
from .order_changes import OrderChanges
from .record_import import ImportRequest, RecordImport
from .upload_calls import UploadCalls

POLL_SOON, POLL_LATER = 0.2, 2.0
"""Seconds between a launcher's syncs: while something is about to happen, and when its program has run for long."""

SOON_TASKS, LATER_TASKS = 150, 300
"""With more tasks than these, launchers sync less often: the number of syncs a second does not grow further."""

TICK_SECONDS, STEADY_TICK_SECONDS = 0.25, 1.0
"""How often time takes effect, as for timeouts: usually, and in a run that is steady."""

VIEW_SECONDS = 3.0
"""A view does not wait longer for another one, nor for the search: it has what was found until then. Observers wait 10 s."""

_SAVE_SECONDS, _SAVE_SECONDS_PER_TASK = 0.02, 0.0005
"""The state is saved at most so often, so that saving costs a part of the time whatever the number of tasks."""

_WHOLE_RUN = ""
"""In place of a hostname: the state of the run, or of a task that others wait for, is not saved."""

END_SECONDS = 30.0
"""While the record cannot be written, a launcher whose task has ended remains for so long, as nothing else has stored the end. Then it
exits, because its machine may be paid for."""


class Controller:
    """The one place where a run's course is decided. Its methods are the calls of `rpc`."""

    def __init__(self, record: Record, train_mode: int = 0, clock: Optional[Clock] = None) -> None:
        record.check_format()
        self._record = record
        self._train_mode = train_mode
        self._clock = clock or Clock()
        self._lock = threading.RLock()
        self._search_lock = threading.Lock()
        self._found: Dict[str, Tuple[Dict[str, str], Found]] = {}
        self._journal = Journal(record)
        self._unsaved: Set[str] = set()
        self._save_at = 0.0
        self._encoded: Dict[str, Tuple[Any, str]] = {}
        self._ports = PortReservations()
        self._changes = OrderChanges()
        self.dumps = Dumps(self._changes, self._clock.steady)
        self.wake: Callable[[], None] = lambda: None
        """Called when `tick` should be called after `seconds_until_due`."""
        self.uploads = UploadCalls(record, self._uploaded_run, self._commit_upload)
        self.record_import = RecordImport(record)
        self._run: Optional[RunState] = None
        self._continue(record.last_alive())

    def _continue(self, last_alive: float) -> None:
        """Continue the current run of the record as it was at this time. One that has arrived must be submitted here first."""
        run = self._record.current()
        self._run = None if run is None or run.has_arrived else run
        if self._run is not None:
            reconcile.recover_clock(self._run, self._clock.read(), last_alive)

    def submit_run(self, spec: RunSpec) -> Dict[str, Any]:
        """Make this the current run. A run that the record has continues where it was, or stays finished."""
        with self._lock:
            now = self._now()
            before = self._run or self._record.current()
            spec = move.claim_train_dir(self._record, spec, self._train_mode)
            spec = replace(spec, train_dir=train_dir(self._record, spec, self._train_mode))
            happened: List[Event] = []
            if self._run is None or self._run.spec.id != spec.id:
                self._save(now)
                earlier = self._record.load(spec.id)
                run = earlier or RunState(spec, now)
                if before is not None:
                    reconcile.inherit_cost(run, before, now)
                happened.append(Event(events.RUN_RESUMED if earlier else events.RUN_SUBMITTED))
                if self._run is not None:
                    reconcile.inherit_fences(run, self._run)
                if earlier is not None:
                    reconcile.resume_run(earlier, now)
                self._run = run
            if continues(self._run):
                happened = happened or [Event(events.RUN_RESUMED)]
                move.continue_run(self._run, now)
            self._run.moves = max(self._run.moves, before.moves if before else 0)
            happened += reconcile.update_spec(self._run, spec, now)
            self._add(happened, now)
            self._save(now)
            self._tidy(spec)
            return {"decided": self._run.result is not None, "train_dir": spec.train_dir, "at": now}

    def _tidy(self, spec: RunSpec) -> None:
        """Remove the code archives of other runs, which every submission sends again, and the oldest runs."""
        self._record.remove_old_runs([spec.id, spec.resume_from])
        for path in self.code_path("x").parent.glob("*.zip"):
            if path.stem != spec.code:
                path.unlink()

    def sync(self, report: LauncherReport) -> Order:
        """Take a launcher's report, and return its next order. The cost does not grow with the number of tasks."""
        with self._lock:
            now, run = self._now(), self._run
            if run is None:
                return Order(NOTHING, poll=POLL_SOON)
            before, was_saved = _fields(run, report.hostname), not self._unsaved
            happened = reconcile.apply_report(run, report, now)
            if happened or _fields(run, report.hostname) != before:
                self._add(happened, now, _WHOLE_RUN if _is_service(run, report.hostname) else report.hostname)
            if self._unsaved and self._clock.steady() >= self._save_at:
                self._save(now)
            if was_saved and self._unsaved:
                self.wake()
            order = reconcile.make_order(run, report, now)
            poll = POLL_SOON * max(1.0, len(run.tasks) / SOON_TASKS)
            is_running = order.action == RUN and report.phase == RUNNING and order.attempt == report.attempt
            if not is_running and not self._unsaved.isdisjoint((_WHOLE_RUN, report.hostname)):
                order = _order_before_save(order, self._journal.failing_seconds(now))
                poll = min(poll, max(POLL_SOON, self.seconds_until_due())) if order.action == NOTHING else poll
            if is_running:
                later = POLL_LATER * max(1.0, len(run.tasks) / LATER_TASKS)
                poll = min(max((now - run.tasks[report.hostname].since) / 3, poll), later)
            reconcile.note_order(run, report, order)
            return replace(order, poll=poll, dump=self.dumps.wanted(report.hostname) if is_running else 0)

    def wait_for_change(self, number: int) -> Dict[str, Any]:
        """Wait until orders have changed since `number` was the number of changes; the present one. Launchers sync `within` so many
        seconds then: those of many tasks not all at once."""
        number = self._changes.wait(number)
        with self._lock:
            excess = len(self._run.tasks) / SOON_TASKS - 1.0 if self._run else 0.0
        return {"number": number, "within": POLL_SOON * max(0.0, excess)}

    def sync_json(self, report: LauncherReport) -> bytes:
        """The same as JSON. What is the same for all tasks, and long for many of them, is encoded once."""
        order = self.sync(report)
        text = json.dumps(replace(order, spec=None, address_book=[]).to_dict())[:-1]
        shared = {"spec": order.spec, "address_book": order.address_book}
        parts = [f', "{name}": {self._shared_json(name, value)}' for name, value in shared.items() if value]
        return f"{text}{''.join(parts)}}}".encode()

    def _shared_json(self, name: str, value: Any) -> str:
        """The JSON of a member of an order; it is encoded again when the member is another object."""
        known, text = self._encoded.get(name, (None, ""))
        if known is not value:
            text = json.dumps(Order(NOTHING, **{name: value}).to_dict()[name])
            self._encoded[name] = (value, text)
        return text

    def queue_restarts(self, hostnames: List[str]) -> None:
        """Restart these tasks one at a time, in the order of job and index, so that new limits take effect."""
        with self._lock:
            if self._run is not None and self._run.result is None:
                reconcile.queue_restarts(self._run, hostnames, self._now())
                self.tick()

    def announce_new_launcher(self, hostname: str, action: str) -> None:
        """The user restarts or replaces a task: the backend is about to start another launcher for it."""
        with self._lock:
            if self._run is not None:
                self._commit(reconcile.announce_new_launcher(self._run, hostname, action))

    def stop(
        self, hostnames: Sequence[str] = (), auxiliary: bool = True, time_limit: float = 0.0, to_move: bool = False
    ) -> None:
        """Remove these tasks; without hostnames, stop the run, with or without its auxiliary tasks. `time_limit` is that of the run, in
        seconds, where that is over; `to_move`: it continues on another backend."""
        with self._lock:
            if self._run is not None and hostnames:
                self._commit(reconcile.remove_tasks(self._run, list(hostnames)))
            elif self._run is not None and (to_move or not self._run.stop_requested):
                self._commit(reconcile.stop_run(self._run, self._now(), auxiliary, time_limit, to_move))

    def finish_import(self, request: ImportRequest) -> None:
        """Take the record that has arrived. Its run continues once it is submitted; a lost one at once."""
        with self._search_lock, self._lock:
            self._save(self._now())
            self.record_import.finish(request, self._now())
            self._open_again(request.copied_at)
            move.create_train_dir(self._run, self._train_mode)

    def _open_again(self, last_alive: float) -> None:
        """The record is another one now."""
        self._record = Record(self._record.folder)
        self._journal = Journal(self._record)
        self.uploads = UploadCalls(self._record, self._uploaded_run, self._commit_upload)
        self._continue(last_alive)

    def restorable(self, run_id: str) -> Dict[str, Any]:
        """The artifacts that fill an empty `train_dir` of a run: its own, else those of the run that it continues."""
        folder = self._restored_folder(run_id)
        files = [file._asdict() for file in restorable(folder)]
        return {"is_own": folder.name == run_id, "files": files}

    def restored_file(self, run_id: str, path: str) -> Path:
        """One of these artifacts."""
        return restored_path(self._restored_folder(run_id) / "artifacts", path)

    def _restored_folder(self, run_id: str) -> Path:
        spec = self._require(run_id).spec
        folders = [self._record.run_folder(name) for name in (run_id, spec.restored_run, spec.resume_from) if name]
        return next((folder for folder in folders if load_manifest(folder).artifacts), folders[0])

    def tick(self) -> None:
        """Apply the passing of time, and save."""
        with self._lock:
            now = self._now()
            self._record.touch(now)
            if self._run is not None:
                happened = [*self.uploads.expire(self._run, now), *self._journal.note_upload(self._run, now)]
                self._journal.add(self._run.spec.id, happened, now)
            self._save(now)

    def seconds_until_tick(self) -> float:
        """Seconds until the next tick."""
        with self._lock:
            is_steady = self._run is not None and self._run.is_steady and not self._unsaved
            return STEADY_TICK_SECONDS if is_steady else TICK_SECONDS

    def seconds_until_due(self) -> float:
        """Seconds until what was reported is applied and saved; 0 where that is done."""
        with self._lock:
            return max(0.0, self._save_at - self._clock.steady()) if self._unsaved else 0.0

    def view(self, request: ViewRequest) -> RecordView:
        """The current state, the last lines, metrics and events."""
        run = self.snapshot()
        return self._record.view(request, run, self.search(run) if run else None)

    def search(self, run: RunState, seconds: float = VIEW_SECONDS) -> Found:
        """Search what was printed since the last search; what the patterns of this run have found in its output until now. It returns
        within so many seconds, in which it waits for a search of another thread, too."""
        deadline = self._clock.steady() + seconds
        if not self._search_lock.acquire(timeout=seconds):
            return replace(self._last_found(run), is_at_end=False)
        try:
            patterns = self._present_patterns(run)
            self._found = {run.spec.id: (patterns, self._record.search(run, patterns, deadline - self._clock.steady()))}
            return self._last_found(run)
        finally:
            self._search_lock.release()

    def _present_patterns(self, run: RunState) -> Dict[str, str]:
        """The patterns of this run now: `run` may be older."""
        with self._lock:
            present = self._run
            return (present if present and present.spec.id == run.spec.id else run).spec.metrics

    def _last_found(self, run: RunState) -> Found:
        """What the last search has found; nothing where it was for another run, or for other patterns."""
        patterns, found = self._found.get(run.spec.id, ({}, Found()))
        return found if patterns == run.spec.metrics else Found()

    @property
    def record(self) -> Record:
        """For calls that decide nothing."""
        return self._record

    def list_files(self, runs: Sequence[str]) -> RecordList:
        """The files of these runs in the record; of the current run, whose state is as it is now, where an id is empty."""
        run, record_id = self.snapshot(), self._record.record_id()
        if run is not None:
            self.search(run)
        current = run.spec.id if run else ""
        wanted = {run_id or current for run_id in runs}
        state = {f"runs/{current}/run_state.json": json.dumps(run.to_dict())} if run and current in wanted else {}
        files = [file for file in list_files(self._record.folder, wanted) if file.name not in state]
        files += [small_file(name, text) for name, text in state.items()]
        return RecordList(record_id, self._clock.read(), files, current, self._record.runs())

    def decide_until(self) -> Found:
        """Search what was printed, and end the run as succeeded if its metrics satisfy all conditions of `until` now."""
        run = self.snapshot()
        found = self.search(run) if run else Found()
        with self._lock:
            present = self._run
            if (
                run
                and present
                and present.spec == run.spec
                and run.spec.until
                and not (present.result or present.reached)
            ):
                until_metrics.apply_values(present, found.values, self._now())
                self._commit(until_metrics.note_problems(present, found.values, found.disabled))
        return found

    def note(self, run_id: str, happened: List[Event]) -> None:
        """Something was observed of this run; it is ignored where another one is the current one."""
        with self._lock:
            if self._run is not None and self._run.spec.id == run_id:
                self._commit(happened)

    def snapshot(self) -> Optional[RunState]:
        """A copy of the current run's state; of one that has arrived too, which is not submitted yet."""
        with self._lock:
            return RunState.from_dict(self._run.to_dict()) if self._run else self._record.current()

    def is_stopped(self) -> bool:
        """Whether the run has ended and all its tasks are in a final state. That is saved: a caller may kill the controller."""
        with self._lock:
            if self._unsaved:
                self._save(self._now())
            run = self._run
            if run is None:
                return True
            has_ended = run.result is not None and all(task.state in FINAL for task in run.tasks.values())
            return has_ended and not artifact_uploads.are_open(run)

    def unfinished(self) -> Dict[str, Any]:
        """What is missing until the run has stopped: the hostnames of its tasks that have not, and why the record cannot be written."""
        with self._lock:
            tasks = self._run.tasks.values() if self._run else ()
            waits_for = [task.hostname for task in tasks if task.state not in FINAL]
            return {"waits_for": waits_for, "problem": self._journal.problem}

    def is_uploading(self) -> bool:
        """Whether a launcher uploads artifacts of the run, or is about to."""
        with self._lock:
            return self._run is not None and artifact_uploads.are_open(self._run)

    def _uploaded_run(self, run_id: str, hostname: str) -> RunState:
        """The run that artifacts are uploaded of: it may have been replaced meanwhile."""
        with self._lock:
            run = self._run if self._run is not None and self._run.spec.id == run_id else self._record.load(run_id)
        if run is None:
            raise CallObsolete(f"there is no run {run_id}")
        if not artifact_uploads.is_taken(run, hostname, run is self._run, self._clock.read()):
            raise CallObsolete(f"{hostname} is not asked to upload artifacts of the run {run_id}")
        return run

    def _commit_upload(self, run: RunState, happened: List[Event], ended_by: str) -> None:
        with self._lock:
            if ended_by:
                artifact_uploads.finish(run, ended_by, self._now())
            if run is self._run:
                self._commit(happened)
            else:
                self._record.save_other(run)
                self._record.add_events(run.spec.id, [replace(event, at=self._now()) for event in happened])

    def put_log(self, run_id: str, hostname: str, kind: str, first: int, at: int, instance: str, data: bytes) -> int:
        """Append lines to a piece of a task's output, and return its new end; `DIFFERS` for a launcher that was replaced, too. What
        differs from it has another `kind` than `own`."""
        task, log = self._require(run_id, hostname).tasks.get(hostname), self._record.log(run_id, hostname)
        if kind == "own" and task is not None and instance in task.fenced:
            return DIFFERS
        if kind == "own":
            has_all = log.path(0).exists()
            end = log.store(first, at, data)
            if has_all and not log.path(0).exists():
                self.note(run_id, [Event(events.OUTPUT_LIMIT, task=hostname)])
            return end
        log = self._record.log_apart(run_id, hostname, instance)
        was_empty = not log.pieces()
        try:
            return log.store(first, at, data)
        finally:  # a full disk may have taken a part
            if was_empty and log.pieces():
                self.note(run_id, [Event(events.OUTPUT_APART, task=hostname)])

    def pieces(self, run_id: str, hostname: str) -> Dict[int, int]:
        """The pieces of a task's output, and their sizes."""
        self._require(run_id, hostname)
        return self._record.log(run_id, hostname).sizes()

    def _require(self, run_id: str, hostname: str = "") -> RunState:
        """The run. A call is refused for one that the record does not have, or for a task that it never had: it may still arrive where
        the record has no current run."""
        current = self._run
        run = current if current is not None and current.spec.id == run_id else self._record.load(run_id)
        if run is None or (hostname and not run.has_had(hostname)):
            unknown = f"the record has no {f'task {hostname} of a ' if hostname else ''}run {run_id}"
            raise CallObsolete(unknown) if current is not None else RunRefused(unknown)
        return run

    def code_path(self, name: str) -> Path:
        """The path of the code archive with this content hash."""
        return self._record.folder / "code" / f"{name}.zip"

    def _now(self) -> float:
        """The time. Where the clock was set, or this process stood still, the state is corrected first."""
        step, paused = self._clock.step(), self._clock.pause()
        now = self._clock.read()
        if step and self._run is not None:
            reconcile.shift_clock(self._run, step)
        if paused and self._run is not None:
            controller_absence.listen_again(self._run, now, paused)
        return now

    def _add(self, happened: List[Event], now: float, hostname: str = _WHOLE_RUN) -> None:
        """Note that the state of a task, or of the run, has changed, and why."""
        if self._run is not None:
            self._journal.add(self._run.spec.id, happened, now)
            self._unsaved.add(hostname)
            self._ports.hold(elastic.unused_ports(self._run))

    def _commit(self, happened: List[Event]) -> None:
        now = self._now()
        self._add(happened, now)
        self._save(now)

    def _save(self, now: float) -> None:
        """Apply the consequences of all changes and of time, and save state and events. On a full disk the next call does it."""
        if self._run is None:
            return
        elastic.reserve_addresses(self._run, self._ports.choose)
        self._journal.add(self._run.spec.id, reconcile.advance(self._run, now), now)
        self._ports.hold(elastic.unused_ports(self._run))
        self._unsaved = set() if self._journal.write(self._run, now) else {_WHOLE_RUN}
        self._changes.note(self._run, now)
        pause = _SAVE_SECONDS + _SAVE_SECONDS_PER_TASK * len(self._run.tasks)
        self._save_at = self._clock.steady() + pause


def _order_before_save(order: Order, failing_seconds: float) -> Order:
    """What of an order is given before the record has the reason for it: where the record cannot be written, all but a start."""
    if order.action in (PREPARE, WAIT):
        return order
    if not failing_seconds or order.action == RUN:
        return Order(NOTHING)
    is_early = order.action == END and order.upload is None and failing_seconds < END_SECONDS
    return replace(order, action=STOP) if is_early else order


def _is_service(run: RunState, hostname: str) -> bool:
    """Whether other tasks wait for what this one has reported."""
    task = run.tasks.get(hostname)
    return task is not None and run.spec.is_service(task.job)


def _fields(run: RunState, hostname: str) -> Dict[str, Any]:
    """The state of one task, for comparison: without the time of the last report, which is not worth saving."""
    task = run.tasks.get(hostname)
    return {**vars(task), "seen": 0.0} if task else {}
