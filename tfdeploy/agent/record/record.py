"""The record: the durable account of a cluster's runs, with states, events and logs. It outlives the cluster.

| file | content |
|---|---|
| `format` | the version of this format |
| `record_id` | the identity of the record, which copies share |
| `current` | the id of the current run |
| `runs/ID/run_state.json`, `run_state.copy` | a run's state, twice: one is readable after a crash of the machine |
| `runs/ID/events.jsonl` | its events, one a line |
| `runs/ID/logs/HOSTNAME/FIRST.log` | a task's output, in pieces |
| `runs/ID/artifacts/`, `artifacts.json` | models and the newest checkpoint, with their paths below `train_dir`, and a list of them |
| `runs/ID/search.json` | what was found in the output: metrics and progress, and how far it was searched |
| `alive` | touched while the controller runs |
"""

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..model.events import RECORD_DAMAGED, Event
from ..model.json_data import JsonData
from ..model.run_state import DEAD, RESTARTING, RunState
from ..system.files import write_whole
from . import event_log
from .output import Log
from .progress import Progress
from .record_files import FOLDER_NAME, STATE_FILES, RecordList
from .stored_artifact import LeftOut, StoredArtifact

if TYPE_CHECKING:
    from .output_search import Found, Search

FORMAT = "4"
"""The version of the record's format. Version 1 had no file `format`. Version 3 had two streams and an index for a task's output."""

PROTOCOL = 3
"""The version of the agent's calls, which views and copies contain."""


class RecordFormatError(Exception):
    """The record was written by another version of tfdeploy."""

    def __init__(self, folder: Path, version: str) -> None:
        remedy = "Destroy its cluster with the version of tfdeploy that wrote it, or move the folder away"
        super().__init__(f"{folder}: its record has format {version}, and this version reads {FORMAT}. {remedy}.")


class RecordDamaged(RecordFormatError):
    """The state of a run cannot be read."""

    def __init__(self, folder: Path) -> None:
        remedy = "Restore the folder from a backup, or move it away"
        Exception.__init__(self, f"{folder}: the state of the run is damaged, in both of its files. {remedy}.")


_UPLOAD_PROBLEM = "upload_problem"

_MAX_APART = 8
"""Of so many launchers of a task that were replaced, the output is stored."""

MAX_RUNS = 50
"""How many runs of a cluster are stored; the oldest are deleted first."""


FAILURE_LINES = 400
"""A view has so many last lines of a task that failed, however few were requested: TensorFlow prints much after the
cause, and values of 300 lines in it."""

_MAX_FAILURES = 5
"""Of so many failed tasks, the first ones."""


class StoredLine(NamedTuple):
    """One line of a task's output, as a view has it."""

    at: float
    pipe: int
    text: str


@dataclass(frozen=True)
class ViewRequest(JsonData):
    """What a view should contain."""

    log_lines: int = 0
    """How many last lines of each task."""
    events: int = 50
    """How many last events."""


@dataclass(frozen=True)
class RecordView(JsonData):
    """What is known of the current run."""

    at: float = 0.0
    run_state: Optional[RunState] = None
    logs: Dict[str, List[StoredLine]] = field(default_factory=dict)
    """Hostname to its last lines, oldest first."""
    metrics: Dict[str, str] = field(default_factory=dict)
    events: List[Event] = field(default_factory=list)
    """Oldest first."""
    protocol: int = PROTOCOL
    """The version of the agent's calls."""
    artifacts: List[StoredArtifact] = field(default_factory=list)
    left_out: List[LeftOut] = field(default_factory=list)
    """What of `train_dir` is not among the artifacts."""
    unprinted: List[str] = field(default_factory=list)
    """After the success of the run: the metrics that no line of its output has."""
    progress: Dict[str, Progress] = field(default_factory=dict)
    """Hostname to the progress of the training."""

    def to_dict(self) -> Dict[str, Any]:
        """As JSON; a line is a list."""
        logs = {name: [[line.at, line.pipe, line.text] for line in lines] for name, lines in self.logs.items()}
        return {**super().to_dict(), "logs": logs}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "RecordView":
        """From JSON. A controller that does not state the version of its calls has the first one."""
        logs = {name: [StoredLine(*line) for line in lines] for name, lines in data["logs"].items()}
        return super().from_dict({"protocol": 0, **data, "logs": logs})


def current_run(listed: RecordList) -> Optional[RunState]:
    """The current run in a list of a record's files.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: this version does not understand it.
    """
    text = listed.text(f"runs/{listed.run}/run_state.json")
    return RunState.from_dict(json.loads(text)) if text else None


def _read_state(path: Path) -> Optional[RunState]:
    """The state in this file; None where it is damaged."""
    try:
        return RunState.from_dict(json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class Record:
    """The record in one folder. Only the controller writes it; any process may read it."""

    def __init__(self, folder: Path, is_copy: bool = False) -> None:
        """`is_copy`: it is updated from another record, and may be behind it."""
        self.folder = folder
        self._is_copy = is_copy
        self._searches: Dict[str, Search] = {}
        self._saved: Dict[str, Dict[str, Any]] = {}
        self._logs: Dict[Tuple[str, str], Log] = {}

    def run_folder(self, run_id: str) -> Path:
        """The folder of one run."""
        return self.folder / "runs" / run_id

    def artifacts_folder(self, run_id: str) -> Path:
        """The folder of a run's artifacts: plain files, with the paths that they have below `train_dir`."""
        return self.run_folder(run_id) / "artifacts"

    def upload_problem(self) -> str:
        """Why the machine cannot store the record where it outlives the machine, in its words; empty where it can, or need not."""
        path = self.folder / _UPLOAD_PROBLEM
        with suppress(OSError):
            text = path.read_text(errors="replace") if path.exists() else ""
            return " ".join(re.sub("<[^>]*>", " ", text).split())  # S3 responds with XML
        return ""

    def current(self) -> Optional[RunState]:
        """The current run; None before the first."""
        path = self.folder / "current"
        if not path.exists():
            return None
        name = path.read_text(errors="replace").strip()
        if name in self.runs():
            return self.load(name)
        runs = filter(None, map(self.load, self.runs()))  # the file is damaged
        return max(runs, key=lambda run: run.submitted_at, default=None)

    def load(self, run_id: str) -> Optional[RunState]:
        """The state of a run; None where the record does not have it.

        Raises:
            RecordFormatError: the record was written by another version, or is damaged.
        """
        self.check_format()
        paths = [self.run_folder(run_id) / name for name in STATE_FILES]
        states = filter(None, map(_read_state, paths))
        state = next(states, None)
        if state is None and any(path.exists() for path in paths):
            raise RecordDamaged(self.run_folder(run_id))
        return state

    def check_format(self) -> None:
        """Refuse a record of another format; an empty folder has none.

        Raises:
            RecordFormatError: the record was written by another version.
        """
        path = self.folder / "format"
        if path.exists() or (self.folder / "current").exists():
            version = path.read_text(errors="replace").strip("\0 \n") if path.exists() else "1"
            if version not in (FORMAT, ""):  # empty after a crash of the machine
                raise RecordFormatError(self.folder, version)

    def is_readable(self) -> bool:
        """Whether this version can read the record."""
        try:
            self.check_format()
        except RecordFormatError:
            return False
        return True

    def save(self, run: RunState) -> None:
        """Save a run and make it the current one. Nothing is written where only `seen` has changed."""
        run_id, data = run.spec.id, run.to_dict()
        without_seen = {**data, "tasks": [{**task, "seen": 0} for task in data["tasks"].values()]}
        if self._saved.get(run_id) == without_seen:
            return
        self.save_other(run)
        write_whole(self.folder / "current", run_id, sync=True)
        self._saved = {run_id: without_seen}

    def save_other(self, run: RunState) -> None:
        """Save a run, whether it is the current one or not."""
        self._mark_format()
        text = json.dumps(run.to_dict())
        for name in STATE_FILES:
            write_whole(self.run_folder(run.spec.id) / name, text, sync=True)

    def _mark_format(self) -> None:
        self.check_format()
        if not (self.folder / "format").exists():
            write_whole(self.folder / "format", FORMAT, sync=True)

    def runs(self) -> List[str]:
        """The ids of all runs."""
        folder = self.folder / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def results(self) -> Dict[str, str]:
        """The state of each run's result, by the run's id, and by `content_id` where it has one; empty for a run without a result.
        A run that cannot be read is left out."""
        states: Dict[str, str] = {}
        for run_id in self.runs():
            with suppress(RecordFormatError):
                run = self.load(run_id)
                if run is not None:
                    ids = {run_id, run.spec.content_id or run_id}
                    states.update(dict.fromkeys(ids, run.result.state if run.result else ""))
        return states

    def remove_old_runs(self, keep: Sequence[str]) -> None:
        """Delete the oldest runs beyond `MAX_RUNS`, with their artifacts, except those to keep."""
        excess = [run_id for run_id in self.runs() if run_id not in keep and self._has_state(run_id)]
        if len(excess) <= MAX_RUNS:
            return
        excess.sort(key=lambda run_id: self.run_folder(run_id).stat().st_mtime)
        import shutil  # takes the command long to load

        for run_id in excess[:-MAX_RUNS]:
            shutil.rmtree(str(self.run_folder(run_id)), ignore_errors=True)

    def _has_state(self, run_id: str) -> bool:
        return any((self.run_folder(run_id) / name).exists() for name in STATE_FILES)

    def record_id(self) -> str:
        """The identity of this record, which a copy shares; created when it is missing."""
        path = self.folder / "record_id"
        if not path.exists():
            self.set_record_id(os.urandom(16).hex())
        return path.read_text()

    def set_record_id(self, record_id: str) -> None:
        """Set the record's identity."""
        self._mark_format()
        write_whole(self.folder / "record_id", record_id, sync=True)

    def add_events(self, run_id: str, events: Sequence[Event]) -> None:
        """Append events.

        Raises:
            OSError: they cannot be written; then none of them is.
        """
        event_log.append(self._events_path(run_id), events)

    def events(self, run_id: str, last: int = 0) -> List[Event]:
        """The events of a run, oldest first; only the `last` ones where that is given. What cannot be read is skipped, and counted
        in an event at the end."""
        return event_log.read(self._events_path(run_id), last)

    def _events_path(self, run_id: str) -> Path:
        return self.run_folder(run_id) / "events.jsonl"

    def log(self, run_id: str, hostname: str) -> Log:
        """A task's output in a run. There is one object for each, because its lock separates the writers."""
        return self._logs.setdefault((run_id, hostname), Log(self.run_folder(run_id) / "logs" / hostname))

    def log_apart(self, run_id: str, hostname: str, instance: str) -> Log:
        """What differs from a task's output, as of a launcher that was replaced. No task has this name.

        Raises:
            ValueError: there are too many.
        """
        name, logs = f"{hostname}-{instance[:8]}", self.run_folder(run_id) / "logs"
        if not (logs / name).exists() and len([*logs.glob(f"{hostname}-????????")]) >= _MAX_APART:
            raise ValueError("too many launchers of this task were replaced")
        return self.log(run_id, name)

    def hostnames(self, run: RunState) -> List[str]:
        """The tasks that the run has or ever had: those of its state, then what else has a log or was removed."""
        folder = self.run_folder(run.spec.id) / "logs"
        logged = (path.name for path in folder.iterdir()) if folder.exists() else ()
        others = {*logged, *run.removed_attempts} - {*run.tasks}
        return [*run.tasks, *sorted(filter(FOLDER_NAME.fullmatch, others))]

    def touch(self, at: Optional[float] = None) -> None:
        """Note that the controller runs, or ran at this time."""
        with suppress(OSError):  # a full disk
            (self.folder / "alive").touch()
            if at is not None:
                os.utime(self.folder / "alive", (at, at))

    def last_alive(self) -> float:
        """When the controller last ran, in seconds since 1970; 0 for never."""
        path = self.folder / "alive"
        return path.stat().st_mtime if path.exists() else 0.0

    def search(
        self, run: RunState, patterns: Optional[Dict[str, str]] = None, seconds: float = float("inf")
    ) -> "Found":
        """Search what was printed since the last search, for so many seconds; what was found until now. Without patterns, those of the
        run are searched for. With others than before, all of the output is searched again."""
        from .output_search import Search  # most commands get what was found from the controller

        run_id, patterns = run.spec.id, run.spec.metrics if patterns is None else patterns
        if run_id not in self._searches or self._searches[run_id].patterns.texts != patterns:
            self._searches[run_id] = Search(self, run_id, patterns, self._is_copy)
        return self._searches[run_id].advance(run, seconds)

    def view(self, request: ViewRequest, run: Optional[RunState], found: "Optional[Found]" = None) -> RecordView:
        """The view of the current run `run`: as the controller has it, or as it was saved last. Without what was `found` in the output,
        that is searched."""
        now = time.time()
        if run is None:
            return RecordView(now)
        run_id = run.spec.id
        counts = dict.fromkeys(run.tasks, request.log_lines)
        failed = [task for task in run.tasks.values() if task.state in DEAD or task.state == RESTARTING]
        for task in sorted(failed, key=lambda task: task.ended)[:_MAX_FAILURES]:
            counts[task.hostname] = max(request.log_lines, FAILURE_LINES)
        logs = {
            hostname: [StoredLine(line.at, line.pipe, line.text) for line in self.log(run_id, hostname).tail(count)]
            for hostname, count in counts.items()
        }
        found = found or self.search(run)
        from .artifact_manifest import MANIFEST, stored_artifacts

        try:
            artifacts, left_out = stored_artifacts(self.run_folder(run_id))
        except OSError as error:
            artifacts, left_out = [], [LeftOut(MANIFEST, 0, error.strerror or str(error))]
        return RecordView(
            now,
            run,
            logs,
            found.metrics,
            self.events(run_id, request.events) + self._damage(run) + found.warnings,
            artifacts=artifacts,
            left_out=left_out,
            unprinted=found.unprinted,
            progress=found.progress,
        )

    def _damage(self, run: RunState) -> List[Event]:
        """What of the output could not be read: events that are not in the record."""
        damaged = {hostname: len(self.log(run.spec.id, hostname).damage) for hostname in run.tasks}
        return [
            Event(RECORD_DAMAGED, run.submitted_at, hostname, count=count, reason="its output")
            for hostname, count in damaged.items()
            if count
        ]
