"""The user's copy of a cluster's record: updated at each observation, and retained when the cluster is destroyed."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..agent.launch.workdir import locked
from ..agent.record import record_sync
from ..agent.record.artifact_manifest import stored_artifacts
from ..agent.record.record import Record, RecordFormatError
from ..agent.record.record_sync import CopyChanges, CopyPosition
from ..agent.transport.rpc import CallError
from ..errors import DISK_FULL, BackendError, file_error
from ..paths import RECORDS_FOLDER, cluster_folder, cluster_state, make_private, set_aside, state_folder
from ..units import text_of_seconds
from .artifact_copy import OBSERVATION_SECONDS, copy_artifacts
from .base import ClusterRef
from .controller_calls import ControllerApi, understood

DOWNLOAD_SECONDS = 1800.0
"""How long one command copies artifacts before something is deleted."""


class RecordCopyError(BackendError):
    """The user's copy of a record cannot be written: the disk is full, read-only or damaged, or the folder is another user's."""


class RecordCopy:
    """The copy of one cluster's record. To create this object creates no files."""

    def __init__(self, cluster: ClusterRef) -> None:
        self.home = state_folder() / cluster_state(cluster)
        self.folder = self.home / "record"
        self.record = Record(self.folder, stores_matches=True)

    def update(self, controller: ControllerApi) -> CopyChanges:
        """Update the copy from the controller's record; the controller's last response.

        Raises:
            ConnectionError, CallError: the controller does not respond, or refuses the call.
            RecordCopyError: the copy cannot be written. What was copied stays; a later update continues there.
        """
        with self._locked():
            changes = record_sync.update_copy(self.record, _copy_call(controller), self._start_over)
            resumed = changes.run_state.spec.resume_from if changes.run_state else ""
            self.record.remove_old_runs([changes.current, resumed])
            self._copy_artifacts(controller, changes, OBSERVATION_SECONDS)
            return changes

    def update_all_runs(self, controller: ControllerApi) -> None:
        """Update the copies of earlier runs too, with all artifacts.

        Raises:
            RecordCopyError: that takes longer than `DOWNLOAD_SECONDS`. The next call continues.
        """
        deadline = time.monotonic() + DOWNLOAD_SECONDS
        with self._locked():
            for changes in record_sync.update_all_runs(self.record, _copy_call(controller)):
                is_whole = self._copy_artifacts(controller, changes, max(0.0, deadline - time.monotonic()))
                if not is_whole and time.monotonic() >= deadline:
                    raise RecordCopyError(
                        f"the artifacts could not be copied to {self.folder} within {text_of_seconds(DOWNLOAD_SECONDS)}. "
                        "What has arrived is there: run the command again, and it continues."
                    )

    def _copy_artifacts(self, controller: ControllerApi, changes: CopyChanges, seconds: float) -> bool:
        """Fetch artifacts of the run that `changes` are about; whether the copy has all. What the controller refuses now is fetched by
        the next update."""
        if changes.run_id not in self.record.runs():
            return True
        try:
            return copy_artifacts(controller, self.record.run_folder(changes.run_id), changes.artifacts, seconds)
        except CallError:
            return False

    def download(self, controller: ControllerApi) -> bool:
        """Update the copies of all runs, as far as the controller responds; whether it has responded to the end.

        Raises:
            RecordCopyError: the copy cannot be written, so that the record must not be deleted where it is.
        """
        with suppress(ConnectionError, CallError):
            self.update(controller)
            self.update_all_runs(controller)
            return True
        return False

    def copy_to(self, folder: Path) -> None:
        """Copy this copy to a folder of the same disk. Artifacts, which are large and never change, are linked.

        Raises:
            RecordCopyError: it cannot be written.
        """

        def copy(source: str, target: str) -> None:
            is_artifact = Path(source).relative_to(self.folder).parts[2:3] == ("artifacts",)
            (os.link if is_artifact else shutil.copy2)(source, target)

        with self._locked():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self.folder, folder, copy_function=copy)

    def has_moved(self) -> bool:
        """Whether another backend has the record, so that this copy and its original are not needed."""
        with suppress(RecordFormatError):
            run = self.record.current()
            return run is not None and bool(run.moved_to)
        return False

    def retire(self) -> str:
        """Set the record aside, unless it has moved, and remove the cluster's folder; a sentence about where the record is, and what it
        does not have."""
        has_moved = self.has_moved()
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
    def _locked(self) -> Iterator[None]:
        try:
            make_private(self.home)
            with locked(self.home):
                yield
        except ConnectionError:  # the controller's
            raise
        except OSError as error:
            remedy = "" if error.errno in DISK_FULL else " Repair this, and run the command again."
            sentence = f"the record cannot be copied to {self.folder}: {file_error(error)}{remedy}"
            raise RecordCopyError(sentence) from None

    def _start_over(self) -> None:
        self.set_aside()
        self.record = Record(self.folder, stores_matches=True)


def record_archive(cluster: ClusterRef) -> str:
    """The folder in which the records of a cluster are after it was destroyed."""
    archives = state_folder() / RECORDS_FOLDER
    return str(archives / cluster_folder(cluster) if cluster["id"] else archives)


def _copy_call(controller: ControllerApi) -> record_sync.Call:
    def call(position: CopyPosition) -> CopyChanges:
        return understood(CopyChanges.from_dict, controller.json("POST", "/copy", position.to_dict()))

    return call
