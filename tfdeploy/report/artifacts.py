"""The output `artifacts`, and sentences about artifacts. Pure."""

from ..agent.record.artifacts import (
    BAD_NAME,
    CHANGED,
    CHECKPOINT,
    CLUSTER_LIMIT,
    DISK_FULL,
    FILES,
    LIMIT,
    MAX_BYTES,
    MAX_FILES,
    NO_MATCH,
    NOT_COPIED,
    OTHER_MACHINE,
    OUTSIDE,
    RUN_LIMIT,
    UNREADABLE,
    WRONG_HASH,
    StoredArtifact,
)
from ..agent.run_state import UPLOAD_LOST, UPLOADING, RunState
from ..backends.base import ObservedState
from ..outputs import ArtifactRow
from ..units import text_of_size

COPY_SECONDS = 60.0
"""An update waits so long for the artifacts of a run that has ended."""

_THERE = "It is still in `train_dir`"

REASONS = {
    LIMIT: f"a run stores at most {text_of_size(MAX_BYTES)} in {MAX_FILES} files. {_THERE}; `artifacts` chooses what is stored",
    CHANGED: f"it changed while it was uploaded. {_THERE}",
    UNREADABLE: f"the task may not read it. {_THERE}; set `container.user`, or have the program write it with another mode",
    OUTSIDE: "it has a link to a file outside of `train_dir`. Have the program copy that file",
    NO_MATCH: "the pattern names no file below `train_dir`",
    BAD_NAME: f"the name of one of its files is longer than 255 bytes, or is not UTF-8. {_THERE}",
    DISK_FULL: f"the controller could not write it to its disk. {_THERE}; make room there before the next run",
    WRONG_HASH: f"it arrived damaged, again and again. {_THERE}",
    OTHER_MACHINE: f"another machine has a file of the same name, which is stored. {_THERE}",
    CLUSTER_LIMIT: "a cluster stores the artifacts of its newest runs only",
    RUN_LIMIT: f"a run stores at most {text_of_size(MAX_BYTES)} in {MAX_FILES} files, and a later upload needed its room",
    NOT_COPIED: "it was not on this computer yet when the run moved, and the place that had it did not respond",
}
"""Why something was not stored, and what to do."""


def reason_text(reason: str) -> str:
    """Why something was not stored, and what to do."""
    return REASONS.get(reason, reason)


def artifact_rows(observed: ObservedState) -> list[ArtifactRow]:
    """The output `artifacts`: what is stored, then what is not."""
    view = observed.view
    if view.run_state is None:
        return []
    folder = f"{observed.record_folder}/runs/{view.run_state.spec.id}/artifacts"
    rows = [_row(artifact, folder) for artifact in view.artifacts]
    left_out = [_problem(item.name, item.size, f"{reason_text(item.reason)}.") for item in view.left_out]
    return [*rows, *left_out, *_lost(view.run_state)]


def _row(artifact: StoredArtifact, folder: str) -> ArtifactRow:
    path = artifact.name if artifact.kind == CHECKPOINT else artifact.path
    place = folder if artifact.kind == FILES or path == "." else f"{folder}/{path}"
    problem = "" if artifact.is_complete else "It is not on this computer yet: `pulumi up` copies it."
    return {
        "name": artifact.name,
        "kind": artifact.kind,
        "size": artifact.size,
        "path": place if artifact.is_complete else "",
        "problem": problem,
    }


def _problem(name: str, size: int, sentence: str) -> ArtifactRow:
    return {"name": name, "kind": "", "size": size, "path": "", "problem": sentence[0].upper() + sentence[1:]}


def _lost(run_state: RunState) -> list[ArtifactRow]:
    return [
        _problem(
            run_state.spec.train_dir,
            0,
            f"the launcher of {upload.task} on {machine} did not respond, so that models and checkpoints there were not uploaded.",
        )
        for machine, upload in run_state.uploads.items()
        if upload.state == UPLOAD_LOST
    ]


def is_uploading(observed: ObservedState) -> bool:
    """Whether artifacts of a run that has ended are about to arrive on this computer, and that does not take too long."""
    run_state = observed.view.run_state
    if run_state is None or observed.controller_silent_since is not None or not run_state.uploads:
        return False
    since = max(upload.at for upload in run_state.uploads.values())
    is_open = any(upload.state == UPLOADING for upload in run_state.uploads.values())
    is_incomplete = any(not artifact.is_complete for artifact in observed.view.artifacts)
    return (is_open or is_incomplete) and observed.view.at - since < COPY_SECONDS
