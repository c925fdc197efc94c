"""Each way in which a record is copied brings every byte of it, whatever happens meanwhile: the user's copy, a bucket, and a controller
that is given it."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.clusters import cluster_ref
from tests.examples import examples
from tests.unit.agent.imported import Caller
from tests.unit.backends.distant import Cut, Distant, distant_record
from tests.unit.printing import CHUNKS, write
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model.run_state import STOPPED, RunResult
from tfdeploy.agent.record import output, record_files, replica
from tfdeploy.agent.record.artifact_manifest import is_complete, load_manifest
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.record_files import Range, grows, list_files
from tfdeploy.backends.ec2.record_bucket import Manifest
from tfdeploy.backends.ec2.watchdog import record_upload
from tfdeploy.backends.ec2.watchdog.record_upload import LIST, RecordUpload, part_name
from tfdeploy.backends.lost_record import give_record
from tfdeploy.backends.record_copy import RecordCopy, RecordCopyError, RecordLost

PART, PIECE = 60, 150


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (replica, record_files, record_upload):
            patch.setattr(module, "PART", PART)
        patch.setattr(output, "PIECE_BYTES", PIECE)
        yield


class UserCopy:
    """The copy on the user's computer, by calls to the controller."""

    def __init__(self, distant: Distant) -> None:
        self._distant = distant
        self.folder = RecordCopy(cluster_ref()).folder

    def copy(self, calls: int) -> None:
        self._distant.calls_left = calls
        try:
            RecordCopy(cluster_ref()).update(self._distant)
            RecordCopy(cluster_ref()).update_all_runs(self._distant)
        finally:
            self._distant.calls_left = 1_000_000


class Bucket:
    """The same copy, from a bucket. What uploads is another watchdog after it was killed."""

    def __init__(self, distant: Distant) -> None:
        self._distant = distant
        self.folder = RecordCopy(cluster_ref()).folder
        self.objects: dict[str, bytes] = {}
        self._calls_left = 0
        self._upload: RecordUpload | None = None

    def _put(self, key: str, body: bytes) -> None:
        self._use()
        self.objects[key] = body

    def _use(self) -> None:
        if self._calls_left <= 0:
            raise Cut
        self._calls_left -= 1

    def copy(self, calls: int) -> None:
        self._calls_left = calls
        self._distant.record.record_id()
        if self._upload is None or self._upload._folder != self._distant.record.folder:
            self._upload = RecordUpload(self._distant.record.folder, self._put)
        try:
            while not self._upload.upload():
                pass
        except Cut:
            if calls % 2:
                self._upload = None
            self._calls_left = 1_000_000
        if LIST in self.objects:
            manifest = Manifest.from_dict(json.loads(self.objects[LIST]))
            if manifest.record.record_id == self._distant.record.record_id():
                RecordCopy(cluster_ref()).follow(manifest.record, self._reader(manifest))

    def _reader(self, manifest: Manifest) -> replica.Read:
        def read(ranges: Sequence[Range]) -> list[bytes]:
            self._use()
            name, offset, size = ranges[0]
            path = part_name(name, offset // PART, manifest.places.get(name, ""))
            part = self.objects[f"record/{manifest.record.record_id}/{path}"]
            return [part[offset % PART :][:size]]

        return read


class Given:
    """A controller that is given the record. Each call that is cut is the end of a controller."""

    def __init__(self, distant: Distant) -> None:
        self._distant = distant
        self.folder = distant.record.folder.with_name("given")

    def copy(self, calls: int) -> None:
        if self._distant.run is not None:
            (self.folder / "current").unlink(missing_ok=True)  # the disk of the one before was lost in part
            self._distant.record.save(self._distant.run)
            give_record(Caller(Controller(Record(self.folder)), calls), self._distant.record.folder, 1.0)


Way = UserCopy | Bucket | Given
WAYS: dict[str, type[Way]] = {"user's copy": UserCopy, "bucket": Bucket, "given": Given}


def check(distant: Distant, folder: Path) -> None:
    """What the copy has is what the record has or had: whole pieces, and at most one of each task that is open."""
    copy = Record(folder)
    if not folder.exists() or copy.record_id() != distant.record.record_id():
        return
    open_pieces: dict[Path, int] = {}
    for path in folder.glob("runs/*/logs/*/*.log"):
        original = distant.record.folder / path.relative_to(folder)
        if original.exists():
            whole, data = original.read_bytes(), path.read_bytes()
            assert whole.startswith(data), path
            open_pieces[path.parent] = open_pieces.get(path.parent, 0) + (len(data) < len(whole))
    assert max(open_pieces.values(), default=0) <= 1, open_pieces
    for run_id in copy.runs():
        for artifact in load_manifest(copy.run_folder(run_id)).artifacts:
            assert is_complete(copy.run_folder(run_id), artifact)
            for file in artifact.files:
                content = (copy.artifacts_folder(run_id) / file.name).read_bytes()
                assert hashlib.sha256(content).hexdigest() == file.sha256, file.name


def fence(distant: Distant, place: int, chunks: Any) -> None:
    """A launcher that was replaced still has output of its own."""
    if distant.run:
        names = list(distant.run.tasks)
        with suppress(ValueError):
            write(distant.record.log_apart(distant.run.spec.id, names[place % len(names)], f"{place}" * 32), chunks)


def forget(distant: Distant, place: int) -> None:
    """A task has too many pieces: the oldest is deleted."""
    if distant.run:
        names = list(distant.run.tasks)
        log = distant.record.log(distant.run.spec.id, names[place % len(names)])
        for first in log.pieces()[:-1][:1]:
            log.path(first).unlink()


def checkpoint(distant: Distant, step: int) -> None:
    """A newer checkpoint has replaced the one before."""
    if distant.run:
        files = {"checkpoint": f"c-{step}".encode(), f"c-{step}.data": bytes([step]) * 130, "same": b"same"}
        distant.store("keras", str(step), **files)
        for path in distant.record.artifacts_folder(distant.run.spec.id).iterdir():
            if path.name not in files:
                path.unlink()


LINE = [(STDOUT, b"line\n")]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just(Distant.submit), st.sampled_from(["one", "two"]), st.integers(1, 3)),
        st.tuples(st.just(Distant.print), st.integers(0, 2), CHUNKS),
        st.tuples(st.just(Distant.print), st.just(0), CHUNKS),
        st.tuples(st.just(Distant.shrink)),
        st.tuples(st.just(Distant.happen), st.text(max_size=20)),
        st.tuples(st.just(fence), st.integers(0, 2), CHUNKS),
        st.tuples(st.just(forget), st.integers(0, 2)),
        st.tuples(st.just(checkpoint), st.integers(1, 9)),
        st.tuples(st.just("copy"), st.integers(0, 12)),
        st.tuples(st.just("copy"), st.just(1_000_000)),
        st.tuples(st.just("full"), st.integers(0, 8)),
        st.tuples(st.just(Distant.begin_life)),
    ),
    min_size=4,
    max_size=20,
)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=examples(50))
@given(STEPS)
@example([(Distant.submit, "one", 1), (Distant.print, 0, LINE), ("copy", 99), (Distant.print, 0, LINE)])
@example([(Distant.submit, "one", 1), (checkpoint, 1), ("copy", 99), (checkpoint, 2), ("copy", 5), (checkpoint, 3)])
def test_a_copy_becomes_equal_whatever_happens_meanwhile(way: str, steps: list[tuple[Any, ...]]) -> None:
    with distant_record() as distant:
        copy: Way = WAYS[way](distant)
        for action, *arguments in steps:
            with suppress(Cut, ConnectionError, RecordLost, RecordCopyError):
                if action == "copy":
                    copy.copy(*arguments)
                elif action == "full":
                    with distant.torn_after(*arguments):
                        copy.copy(1_000_000)
                else:
                    action(distant, *arguments)
            check(distant, copy.folder)
        if not distant.run:
            return
        distant.run.result = RunResult(STOPPED, "moved", 2.0)
        distant.record.save(distant.run)
        copy.copy(1_000_000)
        check(distant, copy.folder)
        same(distant.record, Record(copy.folder))


def same(record: Record, copy: Record) -> None:
    """The copy has every file that the record has, byte for byte. A controller adds to the events that it was given it."""
    assert copy.record_id() == record.record_id()
    for file in list_files(record.folder):
        content, copied = ((it.folder / file.name).read_bytes() for it in (record, copy))
        if file.name.endswith("events.jsonl"):
            assert copied.startswith(content), file.name
        elif grows(file.name) or "/artifacts/" in file.name:
            assert copied == content, file.name
    run, copied_run = record.current(), copy.current()
    assert run is not None
    assert copied_run is not None
    assert run.to_dict() == copied_run.to_dict()
