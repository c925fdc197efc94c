"""The durable account of a cluster's runs: states, events with reasons, logs. It outlives what it tells of.

`life` names the record itself; `current` names the run; `runs/ID/job.json` is the job, `runs/ID/events.jsonl` what
happened, `runs/ID/logs/HOSTNAME/` what the task printed. `alive` is touched while the keeper lives.
"""

import json
import os
import time
import uuid
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from .lines import Log, Matches
from .states import Job
from .verdict import deciders


class Record:
    """The record in one folder. Only the keeper writes it; anyone may read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._saved: Dict[str, Dict[str, Any]] = {}
        self._logs: Dict[Tuple[str, str], Log] = {}
        self._matches: Dict[Tuple[str, ...], Matches] = {}

    def run_folder(self, run: str) -> Path:
        """Where a run's account stands."""
        return self.folder / "runs" / run

    def current(self) -> Optional[Job]:
        """The job of the present run; None before the first."""
        name = self.folder / "current"
        return self.load(name.read_text()) if name.exists() else None

    def load(self, run: str) -> Optional[Job]:
        """The job of a run, or None for one that has no account."""
        path = self.run_folder(run) / "job.json"
        return Job.from_dict(json.loads(path.read_text())) if path.exists() else None

    def save(self, job: Job) -> None:
        """Keep the job and make its run the present one; costs nothing when nothing but `seen` has changed."""
        run = job.run["id"]
        data = job.to_dict()
        known = {**data, "tasks": [{**task, "seen": 0} for task in data["tasks"].values()]}
        if self._saved.get(run) == known:
            return
        self.keep(job)
        _write(self.folder / "current", run)
        self._saved = {run: known}

    def keep(self, job: Job) -> None:
        """Keep the job of a run, be it the present one or not."""
        folder = self.run_folder(job.run["id"])
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "job.json", json.dumps(job.to_dict()))

    def runs(self) -> List[str]:
        """The runs that have an account."""
        folder = self.folder / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def life(self) -> str:
        """The name of this record, which a copy of it shares; one that has none gets one."""
        path = self.folder / "life"
        if not path.exists():
            self.live(uuid.uuid4().hex)
        return path.read_text()

    def live(self, life: str) -> None:
        """Take that name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder / "life", life)

    def event(self, run: str, text: str, at: float) -> None:
        """Add one line to the account of what happened."""
        self.run_folder(run).mkdir(parents=True, exist_ok=True)
        with (self.run_folder(run) / "events.jsonl").open("a") as events:
            events.write(json.dumps({"at": at, "text": text}) + "\n")

    def events(self, run: str) -> List[Dict[str, Any]]:
        """What happened in a run, oldest first."""
        lines = self.events_from(run, 0).splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def events_from(self, run: str, position: int) -> str:
        """The text of the account from this byte on."""
        try:
            with (self.run_folder(run) / "events.jsonl").open("rb") as events:
                events.seek(position)
                return events.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def events_end(self, run: str) -> int:
        """How many bytes the account of what happened has."""
        path = self.run_folder(run) / "events.jsonl"
        return path.stat().st_size if path.exists() else 0

    def put_events(self, run: str, position: int, text: str) -> None:
        """Add to a copy of the account what stands in the first at `position`; what is here already is passed over."""
        fresh = text.encode()[max(0, self.events_end(run) - position) :]
        if fresh:
            self.run_folder(run).mkdir(parents=True, exist_ok=True)
            with (self.run_folder(run) / "events.jsonl").open("ab") as events:
                events.write(fresh)

    def log(self, run: str, hostname: str) -> Log:
        """What a task printed in a run. One object for each, because it is what keeps writers apart."""
        return self._logs.setdefault((run, hostname), Log(self.run_folder(run) / "logs" / hostname))

    def touch(self, at: Optional[float] = None) -> None:
        """Say that the keeper lives, or did at this moment."""
        (self.folder / "alive").touch()
        if at is not None:
            os.utime(self.folder / "alive", (at, at))

    def last_alive(self) -> float:
        """When the keeper last said that it lives, in seconds since 1970; 0 when it never did."""
        path = self.folder / "alive"
        return path.stat().st_mtime if path.exists() else 0.0

    def metrics(self, job: Job, patterns: Dict[str, str]) -> Dict[str, str]:
        """What each pattern found last in this run: in the lines of the tasks that decide, in order; else in the others'."""
        first = [task.hostname for task in deciders(job)]
        order = first + [task.hostname for task in job.crew if task.hostname not in first]
        found: Dict[str, str] = {}
        for hostname in order if patterns else []:
            key = (job.run["id"], hostname, json.dumps(patterns, sort_keys=True))
            if key not in self._matches:
                self._matches[key] = Matches(self.log(job.run["id"], hostname), patterns)
            found = {**self._matches[key].latest(), **found}
        return found

    def view(self, ask: Dict[str, Any], job: Optional[Job]) -> Dict[str, Any]:
        """What has been seen of the present run, whose job is `job`: as the keeper remembers it, or as it was saved last.

        `ask` has `log_lines` (how many last lines of each task) and `metrics` (name to pattern). The answer is plain JSON:
        `job` (as `states.Job.to_dict` gives it, or None), `logs`, `metrics`, `events`, `at`.
        """
        now = time.time()
        if job is None:
            return {"job": None, "logs": {}, "metrics": {}, "events": [], "at": now}
        run = job.run["id"]
        logs = {
            hostname: [[line.at, line.pipe, line.text] for line in self.log(run, hostname).tail(ask["log_lines"])]
            for hostname in job.tasks
        }
        return {
            "job": job.to_dict(),
            "logs": logs,
            "metrics": self.metrics(job, ask["metrics"]),
            "events": self.events(run)[-ask.get("events", 50) :],
            "at": now,
        }


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
