"""The user's copy of a cluster's record: updated at each observation, and retained when the cluster is destroyed."""

import json
import logging
import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from ..agent.model.run_state import RunState
from ..agent.record.artifact_manifest import stored_artifacts
from ..agent.record.record import PROTOCOL, Record, RecordView, ViewRequest, current_run
from ..agent.record.record_files import Range, RecordList
from ..agent.record.replica import Read, Replica, read_all, unpack
from ..agent.system.locks import IsLocked, locked
from ..agent.wire.rpc import CallError
from ..errors import DISK_FULL, BackendError, Forbidden, Unreachable, file_error
from ..paths import RECORDS_FOLDER, cluster_folder, cluster_state, make_private, set_aside, state_folder
from ..units import text_of_seconds
from . import controller_calls
from .base import CONTROLLER, ClusterRef, EngineTask, Retain
from .controller_calls import ControllerApi, understood

_log = logging.getLogger(__name__)

DELETE_UNREACHABLE = "TFDEPLOY_DELETE_UNREACHABLE"
"""Set to 1, `pulumi destroy` succeeds although the engine does not respond."""

OBSERVATION_SECONDS = 3.0
"""How long one observation fetches artifacts. What is left is fetched by the next one, and before a cluster is deleted."""

DOWNLOAD_SECONDS = 1800.0
"""How long one command copies artifacts before something is deleted."""

_SHORT_WAIT, _LONG_WAIT = 5.0, 60.0
"""How long an observation, and a command that deletes something, wait for another command that copies the same record. Such a command
needs a few seconds; one that is suspended (Ctrl-Z) holds the lock for as long as it is."""


class RecordUpdate(NamedTuple):
    """The record at the controller, to which a copy was updated; or where that was stored last."""

    at: float
    """The controller's time."""
    run_state: RunState | None
    """Its current run."""


class RecordLost(Unreachable):
    """A controller without the record that it is to have."""


class RecordCopyError(BackendError):
    """The user's copy of a record cannot be written: the disk is full, read-only or damaged, or the folder is another user's."""


class RecordCopyBusy(RecordCopyError):
    """Another command copies the record, and does not come to an end."""


class RecordCopy:
    """The copy of one cluster's record. To create this object creates no files."""

    def __init__(self, cluster: ClusterRef) -> None:
        self.home = state_folder() / cluster_state(cluster)
        self.folder = self.home / "record"
        self.record = Record(self.folder, is_copy=True)

    def update(self, controller: ControllerApi, waits: bool = False) -> RecordUpdate:
        """Update the copy from the controller's record, and the copy of the run that was the current one before. `waits` is whether it
        waits long for another command.

        Raises:
            ConnectionError, CallError: the controller does not respond, or refuses the call.
            RecordLost: it has no record, and this copy is that of its predecessor.
            RecordCopyBusy: another command copies it.
            RecordCopyError: the copy cannot be written. What was copied stays; a later update continues there.
        """
        with self.locked(_LONG_WAIT if waits else _SHORT_WAIT):
            before, original = self.record.current(), _Original(controller)
            listed = original.files(["", *([before.spec.id] if before else [])])
            if before and not listed.run:
                raise RecordLost("the controller has no record: its disk was lost. `pulumi up --refresh` restores it")
            run = current_run(listed)
            self._follow(listed, original.read, OBSERVATION_SECONDS)
            self.record.remove_old_runs([listed.run, run.spec.resume_from if run else ""])
            return RecordUpdate(listed.at, run)

    def update_all_runs(self, controller: ControllerApi) -> None:
        """Update the copies of earlier runs too, with all artifacts.

        Raises:
            RecordCopyError: that takes longer than `DOWNLOAD_SECONDS`. The next call continues.
        """
        deadline = time.monotonic() + DOWNLOAD_SECONDS
        with self.locked(_LONG_WAIT):
            original = _Original(controller)
            for run_id in original.files([]).runs:
                listed = original.files([run_id])
                if listed.record_id != self.record.record_id():
                    return
                missing = self._follow(listed, original.read, deadline - time.monotonic())
                if missing and time.monotonic() >= deadline:
                    raise RecordCopyError(
                        f"the record could not be copied to {self.folder} within {text_of_seconds(DOWNLOAD_SECONDS)}. "
                        "What has arrived is there: run the command again, and it continues."
                    )

    def follow(self, listed: RecordList, read: Read) -> list[str]:
        """Update the copy from a list of the record's files, which `read` reads; the names of those that it still lacks.

        Raises:
            RecordCopyError: the copy cannot be written.
        """
        with self.locked(_LONG_WAIT):
            return self._follow(listed, read, math.inf)

    def _begin(self, record_id: str) -> Record:
        """Make this the copy of the record with this id. Where the cluster was created again, the former record is set aside."""
        if self.record.record_id() != record_id:
            self.set_aside()
            self.record = Record(self.folder, is_copy=True)
            self.record.set_record_id(record_id)
        return self.record

    def _follow(self, listed: RecordList, read: Read, seconds: float) -> list[str]:
        """Artifacts are fetched for so many seconds. What the controller refuses now is fetched by the next update."""
        self._begin(listed.record_id)
        deadline = time.monotonic() + seconds
        replica = Replica(self.folder, lambda: time.monotonic() >= deadline)
        missing = read_all(replica.grow(listed.files), read)
        replica.store_states(listed.files)
        if listed.run and not missing:
            self.record.touch(listed.at)
        with suppress(CallError):
            return missing + read_all(replica.fetch_artifacts(listed.files), read)
        return [*missing, "artifacts"]

    def download(self, controller: ControllerApi) -> bool:
        """Update the copies of all runs, as far as the controller responds; whether it has responded to the end.

        Raises:
            RecordCopyError: the copy cannot be written, so that the record must not be deleted where it is.
        """
        with suppress(ConnectionError, CallError):
            self.update(controller, waits=True)
            self.update_all_runs(controller)
            return True
        return False

    def retire(self, retain: Retain) -> str:
        """Set the record aside, unless it has moved, and remove the cluster's folder; a sentence about where the record is, and what it
        does not have."""
        has_moved = retain.get("is_elsewhere")
        missing = "" if has_moved else self.missing_artifacts()
        archive = "" if has_moved else self.set_aside()
        shutil.rmtree(self.home, ignore_errors=True)
        return "; ".join(filter(None, [missing, f"the record is retained in {archive}" if archive else ""]))

    def missing_artifacts(self) -> str:
        """The artifacts that this copy knows of and does not have, in a sentence; empty where it has all."""
        names = [
            f"{artifact.name} of run {run_id}"
            for run_id in self.record.runs()
            for artifact in stored_artifacts(self.record.run_folder(run_id))[0]
            if not artifact.is_complete
        ]
        return f"these artifacts could not be copied: {', '.join(names)}" if names else ""

    def set_aside(self) -> str:
        """Move the record to a folder that no later record replaces; that folder, or "" where there is no record."""
        archive = set_aside(self.home, self.folder) if self.record.runs() else ""
        shutil.rmtree(self.folder, ignore_errors=True)
        return archive

    @contextmanager
    def locked(self, seconds: float = _LONG_WAIT) -> Iterator[None]:
        """Nothing else on this computer changes the copy meanwhile. It waits so long for that.

        Raises:
            RecordCopyBusy, RecordCopyError: another command changes it; it cannot be written.
        """
        try:
            make_private(self.home)
            with locked(self.home, seconds):
                yield
        except ConnectionError:  # the controller's
            raise
        except IsLocked:
            waits = f"another command has been copying it for {text_of_seconds(seconds)}, or is suspended (Ctrl-Z)"
            raise RecordCopyBusy(f"the record is not copied to {self.folder}: {waits}. Resume or end it.") from None
        except OSError as error:
            remedy = "" if error.errno in DISK_FULL else " Repair this, and run the command again."
            sentence = f"the record cannot be copied to {self.folder}: {file_error(error)}{remedy}"
            raise RecordCopyError(sentence) from None


def _understood(listed: RecordList) -> RecordList:
    current_run(listed)
    return listed


class _Original:
    """The record at a controller."""

    def __init__(self, controller: ControllerApi) -> None:
        self._controller = controller
        self._record_id = ""

    def files(self, runs: Sequence[str]) -> RecordList:
        """The files of these runs; of the current run where an id is empty."""
        reply = self._controller.json("POST", "/files", {"runs": list(runs)})
        listed = understood(lambda data: _understood(RecordList.from_dict(data)), reply)
        self._record_id = listed.record_id
        return listed

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """The bytes of ranges."""
        body = {"record_id": self._record_id, "ranges": ranges}
        response = self._controller.call("POST", "/ranges", json.dumps(body).encode())
        return understood(lambda _: [data for _, data in unpack(response)], {"protocol": PROTOCOL})


def record_archive(cluster: ClusterRef) -> str:
    """The folder in which the records of a cluster are after it was destroyed."""
    archives = state_folder() / RECORDS_FOLDER
    return str(archives / cluster_folder(cluster) if cluster["id"] else archives)


def observed_view(
    controller: ControllerApi,
    record_copy: RecordCopy,
    engine: Mapping[str, EngineTask] | None,
    query: ViewRequest,
    is_preview: bool,
    problems: list[str],
) -> tuple[RecordView, float | None]:
    """The view of the record, brought up to date where the controller responds; otherwise since when it does not. A preview gets
    the controller's own view, because it writes nothing. A controller that has lost the record, or that the user may not call, is one
    of the `problems`."""
    try:
        if engine is not None and CONTROLLER not in engine:
            raise Unreachable("the controller does not exist")
        if is_preview:
            return controller_calls.view(controller, query), None
        try:
            update = record_copy.update(controller)
        except RecordCopyError as error:
            _warn(str(error))
            return controller_calls.view(controller, query), None
    except (OSError, CallError) as error:
        problems += [str(error)] if isinstance(error, (RecordLost, Forbidden)) else []
        record = record_copy.record
        return record.view(query, record.current()), record.last_alive()
    view = record_copy.record.view(query, update.run_state)
    return replace(view, at=update.at or view.at), None


def refuse_loss(cluster: ClusterRef, record_copy: RecordCopy, retain: Retain, responds: bool) -> None:
    """Refuse to delete the only copy of artifacts, unless the user says so. `responds` is whether the controller does."""
    missing = "" if retain.get("is_elsewhere") else record_copy.missing_artifacts()
    if missing and os.environ.get(DELETE_UNREACHABLE) != "1":
        problem = "cannot send all of them" if responds else "does not respond"
        raise BackendError(
            f"{cluster['name']}: the controller {problem}, and {missing}. Nothing is deleted. Run `pulumi destroy` again when "
            f"it does (`tfdeploy explain` shows why it does not). `{DELETE_UNREACHABLE}=1 pulumi destroy` deletes them"
        )


@cache
def _warn(text: str) -> None:
    """Print a warning, once in a process."""
    _log.warning("Warning: %s", text)
