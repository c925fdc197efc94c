"""What is copied: `TASK:PATH` or `run:RUN/PATH`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...agent.launch.copy_archive import ABSOLUTE, FILE, FOLDER, MISSING, NO_PROGRAM, TRAIN_DIR, URL, WORK, Begin
from ...agent.record.terminal_text import shown_text
from ...backends.backend import access
from ...backends.connection import Connection, LocalFiles
from ...errors import BackendError, NotFound, SpecError
from ...registry import Entry
from ..cluster_selection import ClusterQuery, find_run_id, select_cluster, select_existing_cluster
from ..snapshot import records, take_snapshot
from .transfer import ArrivingFiles

RUN = "run"
"""In place of a task: a stored run."""

_FORMS = "Use TASK:PATH, such as worker-0:train_dir/model.keras, or run:RUN/PATH for what is stored of a run"


@dataclass(frozen=True)
class TaskPath:
    """A path in a task."""

    hostname: str
    base: str
    """`WORK`, `TRAIN_DIR` or `ABSOLUTE`."""
    path: str
    """Relative to the base; empty for the base itself."""


@dataclass(frozen=True)
class RunPath:
    """A path among the artifacts of a stored run."""

    run: str
    """Its id, or the beginning of it."""
    path: str


@dataclass(frozen=True)
class OpenSource:
    """A file or a folder that arrives."""

    arrival: ArrivingFiles
    name: str
    """What the copy is called in a folder."""
    is_here: bool = False
    """Whether it is on this computer, so that a copy could replace it."""

    @property
    def root(self) -> Path:
        """Its real path, where it is."""
        return Path(self.arrival.begin.root)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.arrival.begin.kind == FOLDER


def parse_source(text: str) -> TaskPath | RunPath:
    """The path that a text names.

    Raises:
        SpecError: it names none.
    """
    name, colon, path = text.partition(":")
    if not colon or not name or "/" in name:
        raise SpecError(
            "SOURCE", f"{text!r} is on this computer, and files are copied from a task or a run only", f"{_FORMS}."
        )
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise SpecError("SOURCE", f"{path!r} contains '..'", "Use a path that begins with /.")
    if name == RUN:
        return RunPath(parts[0] if parts else "", "/".join(parts[1:]))
    if path.startswith("/"):
        return TaskPath(name, ABSOLUTE, "/".join(parts))
    if parts[:1] == [TRAIN_DIR] and path.startswith(TRAIN_DIR):
        return TaskPath(name, TRAIN_DIR, "/".join(parts[1:]))
    return TaskPath(name, WORK, "/".join(parts))


@contextmanager
def open_source(query: ClusterQuery, source: TaskPath | RunPath) -> Iterator[OpenSource]:
    """Connect to a source.

    Raises:
        NotFound: it does not exist; with what there is.
        BackendError: the task does not run now, or its files cannot be read.
    """
    if isinstance(source, RunPath):
        name, folder = _find_artifacts(select_cluster(query), source.run)
        title = f"{RUN}:{name}/{source.path}"
        connection: Connection = LocalFiles(folder, ABSOLUTE, str(folder / source.path))
    else:
        cluster = select_existing_cluster(query).cluster
        title = _title(source)
        name = TRAIN_DIR if source.base == TRAIN_DIR else source.hostname
        connection = access(cluster["backend"]).files(cluster, source.hostname, source.base, source.path or ".")
    try:
        arrival = ArrivingFiles(connection)
        _refuse_missing(arrival.begin, title)
        opened = OpenSource(arrival, source.path.rpartition("/")[2] or name, isinstance(connection, LocalFiles))
        if isinstance(source, RunPath) and not opened.root.is_relative_to(folder.resolve()):
            raise BackendError(f"{title} is a link to {shown_text(str(opened.root))}, which is not an artifact.")
        yield opened
    finally:
        connection.close()


def _title(source: TaskPath) -> str:
    begin = {ABSOLUTE: "/", TRAIN_DIR: f"{TRAIN_DIR}/", WORK: ""}[source.base]
    return f"{source.hostname}:{begin}{source.path}"


def _refuse_missing(begin: Begin, title: str) -> None:
    if begin.kind in (FILE, FOLDER):
        return
    root = shown_text(begin.root)
    if begin.kind == MISSING:
        names = ", ".join(map(shown_text, begin.names)) or "nothing"
        raise NotFound(f"{title} does not exist. {root} has: {names}.")
    remedy = "`tfdeploy cp run:RUN/PATH DEST` copies what is stored of a run."
    if begin.kind == NO_PROGRAM:
        wrong = f"{title}: the program does not run now, so only a path that begins with / can be copied"
        raise BackendError(f"{wrong}. {remedy}")
    if begin.kind == URL:
        raise BackendError(
            f"{title}: the train_dir of this run is {root}, and not in the task. Copy it from there. {remedy}"
        )
    raise BackendError(f"{title} cannot be copied: {shown_text(begin.reason) or 'the task refuses it'}.")


def _find_artifacts(entry: Entry, name: str) -> tuple[str, Path]:
    """The id of a run by its beginning, and the folder of its artifacts. A run that several records have is that of the newest one
    with artifacts.

    Raises:
        NotFound: no run has artifacts with this name; with those that have.
    """
    current = "" if entry.ended else take_snapshot(entry, events=0).observed.record_folder
    stored_records = records(entry, current)
    folders: dict[str, Path] = {}
    for record in stored_records:
        for run_id in record.runs():
            folder = record.artifacts_folder(run_id)
            if folder.is_dir() and any(folder.iterdir()):
                folders.setdefault(run_id, folder)
    stored = f"Runs with artifacts: {', '.join(folders) or 'none'}."
    found = find_run_id(entry.title, name, (run_id for record in stored_records for run_id in record.runs()), stored)
    if found not in folders:
        raise NotFound(f"no artifacts are stored of run {found} of {entry.title}. {stored}")
    return found, folders[found]
