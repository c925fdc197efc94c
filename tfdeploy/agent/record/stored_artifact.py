"""What a view shows of the artifacts in a record, and of what is left out. Pure."""

from dataclasses import dataclass

from ..model.json_data import JsonData

MODEL, KERAS, CHECKPOINT, WEIGHTS, FILES = "model", "keras", "checkpoint", "weights", "files"
"""Kinds of artifacts, in the order in which they are uploaded: a SavedModel, a `.keras` file, a checkpoint, weights or a model in HDF5,
other files."""

MAX_BYTES, MAX_FILES = 2 << 30, 2_000
"""The limits of one run."""

LIMIT, CHANGED, UNREADABLE, OUTSIDE, NO_MATCH, BAD_NAME, DISK_FULL, WRONG_HASH, OTHER_MACHINE, CLUSTER_LIMIT = (
    "limit",
    "changed",
    "unreadable",
    "outside",
    "no_match",
    "bad_name",
    "disk_full",
    "wrong_hash",
    "other_machine",
    "cluster_limit",
)
"""Why something is left out."""

RUN_LIMIT, NOT_COPIED = "run_limit", "not_copied"
"""Later uploads of its run have taken its room; it was not on the user's computer when the run moved from a place that was lost."""


@dataclass(frozen=True)
class LeftOut(JsonData):
    """What is not uploaded, and why."""

    name: str
    size: int
    reason: str
    machine: str = ""


@dataclass(frozen=True)
class StoredArtifact(JsonData):
    """An artifact in a record, as a view shows it."""

    kind: str
    name: str
    size: int
    machine: str = ""
    path: str = ""
    """Where it is below the folder of artifacts: a folder, a file, or the file `checkpoint`."""
    is_complete: bool = True
    """Whether this record has all of its files: a copy gets them in parts."""
