"""The record that a controller is given: of a run that moves here, or its own, which was lost with its disk. The run continues with its
states, events, logs and artifacts.

The record becomes a copy of the one that is sent, as that on a user's computer (`Replica`): the list of the files arrives first, then
the ranges that are missing here. So an import that was cut off continues when it is repeated, and a run that returns needs only what
has changed. The states are written last, and what says which run is the current one after them: until then nothing is decided.
"""

import json
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import List, Optional, Sequence

from ..model import events
from ..model.events import Event
from ..model.json_data import JsonData
from ..model.run_state import RunState
from ..record.artifact_manifest import MANIFEST, ArtifactList, load_manifest, remaining, save_manifest
from ..record.record import FORMAT, Record, current_run
from ..record.record_files import SEARCH_FILE, Range, RecordFile, RecordList, is_state
from ..record.replica import Replica, Steps, unpack
from ..record.run_folders import RunRefused
from ..record.stored_artifact import NOT_COPIED, LeftOut
from ..system.files import write_whole
from . import move


@dataclass(frozen=True)
class ImportRequest(JsonData):
    """What has arrived, once all has."""

    copied_at: float
    """The time at which the copy ends."""
    is_moved: bool = False
    """Whether it is the record of another place. Else this controller has lost it with its disk, and its launchers may still run."""
    returns: bool = False
    """Whether the run was here before: then it continues here also where it has failed at the other place."""


class RecordImport:
    """What a controller is given, which has no record, or that of a run that has moved away."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._lock = threading.Lock()  # a user who did not wait for the end of an import may begin it again meanwhile
        self._listed = RecordList("", 0.0, [])
        self._steps: Optional[Steps[List[str]]] = None
        self._wanted: Optional[List[Range]] = None
        self._missing = ["the record"]
        self._finished: Optional[ImportRequest] = None

    def begin(self, listed: RecordList) -> Optional[List[Range]]:
        """Begin with a list of the files; which ranges are wanted first, None where all is here.

        Raises:
            RunRefused: the record here is another one, or the newer one.
            ValueError: it has no current run, or another format.
            OSError: the disk is full.
        """
        with self._lock:
            self._refuse(listed)
            if self._record.current() is None and self._record.record_id() != listed.record_id:
                shutil.rmtree(str(self._record.folder / "runs"), ignore_errors=True)  # of an import that was cut off
                self._record.set_record_id(listed.record_id)
            self._listed, self._missing = listed, ["the record"]
            self._steps = self._copy(listed.files)
            return self._next(None)

    def put(self, content: bytes) -> Optional[List[Range]]:
        """Store ranges of files, if they are those that are wanted; which are wanted next, None where all has arrived.

        Raises:
            RunRefused: as above: a run was submitted meanwhile.
            ValueError: they were damaged on their way.
            OSError: the disk is full.
        """
        with self._lock:
            self._refuse(self._listed)
            sent, wanted = unpack(content), self._wanted or []
            places = [(part.name, part.offset) for part, _ in sent]
            is_wanted = bool(sent) == bool(wanted) and places == [
                (part.name, part.offset) for part in wanted[: len(sent)]
            ]
            return self._next([data for _, data in sent]) if is_wanted else self._wanted

    def _refuse(self, listed: RecordList) -> None:
        own, given = self._record.current(), current_run(listed)
        if given is None or listed.text("format") not in ("", FORMAT):
            raise ValueError("the record has no current run, or another format")
        if own is not None and self._record.record_id() != listed.record_id:
            raise RunRefused("the record here is another one")
        if own is not None and (own.result is None or own.moves >= given.moves):
            raise RunRefused("the record here has runs already, and the current one has not moved away from here")

    def _copy(self, files: Sequence[RecordFile]) -> Steps[List[str]]:
        replica = Replica(self._record.folder)
        missing = yield from replica.grow(files)
        return missing + (yield from replica.fetch_artifacts(files))

    def _next(self, parts: Optional[Sequence[bytes]]) -> Optional[List[Range]]:
        """Store what was wanted; what is wanted next."""
        if self._steps is not None:
            try:
                self._wanted = self._steps.send(parts)  # type: ignore[arg-type]
            except StopIteration as end:
                self._steps, self._wanted, self._missing = None, None, end.value
            except BaseException:
                self._steps = self._wanted = None
                raise
        return self._wanted

    def finish(self, request: ImportRequest, now: float) -> None:
        """Make what has arrived the record. Where that was cut off, the import is repeated.

        Raises:
            RunRefused: as above.
            ValueError: what has arrived is not whole.
            OSError: the disk is full.
        """
        with self._lock:
            if request == self._finished:
                return
            if self._missing:
                raise ValueError(f"{self._missing[0]} has not arrived, or has another hash")
            self._refuse(self._listed)
            run = self._store_states(request, now)
            if [event.kind for event in self._record.events(run.spec.id, 1)] != [events.RECORD_RESTORED]:
                delay = max(0.0, now - request.copied_at)
                self._record.add_events(run.spec.id, [Event(events.RECORD_RESTORED, now, delay=delay)])
            self._record.save(run)
            self._finished = request

    def _store_states(self, request: ImportRequest, now: float) -> RunState:
        """Store all runs but the current one, and the list of the artifacts of each; the current one."""
        texts = [file.text for file in self._listed.files if file.text and is_state(file.name) and "/" in file.name]
        runs = {run.spec.id: run for run in (RunState.from_dict(json.loads(text)) for text in texts)}
        current = runs.pop(self._listed.run)
        for run in (*runs.values(), current):
            folder = self._record.run_folder(run.spec.id)
            if manifest := self._listed.text(f"runs/{run.spec.id}/{MANIFEST}"):
                _leave_out_pending(folder, manifest)
            if found := self._listed.text(f"runs/{run.spec.id}/{SEARCH_FILE}"):
                write_whole(folder / SEARCH_FILE, found)
            with suppress(FileNotFoundError):  # the artifacts of the oldest runs are deleted first
                os.utime(str(folder / MANIFEST), (run.submitted_at, run.submitted_at))
            if request.is_moved:
                move.arrive(run)
            if run is not current:
                self._record.save_other(run)
        if request.is_moved:
            current.moves += 1
            move.stop_until_submitted(current, request.returns, now)
        return current


def _leave_out_pending(run_folder: Path, listed: str) -> None:
    """List as left out what the sender did not have, unless something later was to take its place: what has copied it may have crashed,
    or its source did not respond. `listed` is its list of artifacts."""
    manifest, sent = load_manifest(run_folder), ArtifactList.from_dict(json.loads(listed))
    lost = manifest.pending
    for item in sent.pending:
        lost = list(remaining(lost, item))
    lost += [item for item in sent.pending if item not in manifest.artifacts]
    if lost or manifest.pending:
        left_out = [LeftOut(item.name, item.size, NOT_COPIED, item.machine) for item in lost]
        save_manifest(run_folder, replace(manifest, left_out=[*manifest.left_out, *left_out], pending=[]))
