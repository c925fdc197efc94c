"""The progress of a run's tasks, read from the record. Each log line is read once, also across processes."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ..agent.files import write_whole
from ..agent.record.log import Reader
from ..agent.record.record import Record
from ..report.progress import Progress, Training, goal

_FILE = "progress.json"
"""In the folder of a run: what was read of its progress, and how far."""

_STORE_SECONDS = 10.0
"""It is stored so often while the cluster is watched. A process that is killed leaves so much to be read again."""


class TrainingReader:
    """Reads the logs of one run from where the last process has stopped."""

    def __init__(self, record: Record, run_id: str) -> None:
        self.folder = record.folder
        self.run_id = run_id
        self._record = record
        self._path = record.run_folder(run_id) / _FILE
        self._readers: dict[str, Reader] = {}
        self._trainings: dict[str, Training] = {}
        self._store_at = time.monotonic() + _STORE_SECONDS
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            self._load()

    def _load(self) -> None:
        data = json.loads(self._path.read_bytes())
        if data["record_id"] != self._record.record_id():
            return
        for hostname, (position, training) in data["tasks"].items():
            reader = Reader(self._record.log(self.run_id, hostname), state=position)
            self._readers[hostname], self._trainings[hostname] = reader, Training.from_dict(training)

    def read(self, hostnames: Sequence[str], commands: Mapping[str, str]) -> None:
        """Read the new lines of these tasks; `commands` has the command of each."""
        for hostname in hostnames:
            if hostname not in self._readers:
                self._readers[hostname] = Reader(self._record.log(self.run_id, hostname))
                self._trainings[hostname] = Training(goal(commands.get(hostname, "")))
            lines = self._readers[hostname].more()
            self._trainings[hostname].add_lines((line.at, line.text) for line in lines)
        if time.monotonic() >= self._store_at:
            self.store()

    def progress(self) -> dict[str, Progress]:
        """Hostname to progress."""
        return {hostname: training.progress for hostname, training in self._trainings.items()}

    def store(self) -> None:
        """Store what was read. Where that is not possible, as on a full disk, the next process reads it again."""
        self._store_at = time.monotonic() + _STORE_SECONDS
        if not self._path.parent.exists():
            return
        tasks = {name: (reader.state(), self._trainings[name].to_dict()) for name, reader in self._readers.items()}
        with suppress(OSError):
            write_whole(self._path, json.dumps({"record_id": self._record.record_id(), "tasks": tasks}), mode=0o600)
