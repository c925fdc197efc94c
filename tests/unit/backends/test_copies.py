"""Each way in which a record is copied brings every byte of it, whatever happens meanwhile: the user's copy, a bucket, and a controller
that is given it."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.clusters import cluster_ref
from tests.examples import examples
from tests.unit.agent.imported import Caller
from tests.unit.backends.distant import Cut, Distant, distant_record, same
from tests.unit.backends.ec2.watchdog.sending import consistent
from tests.unit.printing import CHUNKS, write
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model.run_state import STOPPED, RunResult
from tfdeploy.agent.record import output, record_files, replica
from tfdeploy.agent.record.artifact_manifest import (
    ArtifactList,
    ManifestArtifact,
    ManifestFile,
    is_complete,
    load_manifest,
    save_manifest,
)
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.record_files import Range
from tfdeploy.agent.system import files as agent_files
from tfdeploy.backends.ec2 import record_bucket
from tfdeploy.backends.ec2.record_bucket import Manifest
from tfdeploy.backends.ec2.watchdog import record_upload
from tfdeploy.backends.ec2.watchdog.record_upload import LIST, RecordUpload
from tfdeploy.backends.lost_record import give_record
from tfdeploy.backends.record_copy import RecordCopy, RecordCopyError, RecordLost

PART, PIECE = 60, 150
ALL = 1_000_000
"""So many calls are never cut."""


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (replica, record_files, record_upload):
            patch.setattr(module, "PART", PART)
        patch.setattr(output, "PIECE_BYTES", PIECE)
        patch.setattr(record_bucket, "read_object", Bucket.get)
        yield


class Way:
    """A way of copying the record. `copy` is cut after so many calls."""

    def __init__(self, distant: Distant) -> None:
        self.distant = distant
        self.folder = RecordCopy(cluster_ref()).folder
        self.had: dict[Path, bytes] = {}
        """The output that records had."""
        self.stored: dict[str, set[Path]] = {}
        """What the copy of each record had: output, and the runs of which it had an artifact."""

    def copy(self, calls: int) -> None:
        raise NotImplementedError


class UserCopy(Way):
    """The copy on the user's computer, by calls to the controller."""

    def copy(self, calls: int) -> None:
        self.distant.calls_left = calls
        try:
            RecordCopy(cluster_ref()).update(self.distant)
            RecordCopy(cluster_ref()).update_all_runs(self.distant)
        finally:
            self.distant.calls_left = ALL


class Bucket(Way):
    """The same copy, from a bucket. What uploads is another watchdog after it was killed."""

    def __init__(self, distant: Distant) -> None:
        super().__init__(distant)
        self.objects: dict[str, bytes] = {}
        self._calls_left = 0
        self._upload: RecordUpload | None = None

    def _use(self) -> None:
        if self._calls_left <= 0:
            raise Cut
        self._calls_left -= 1

    def _put(self, key: str, body: bytes) -> None:
        self._use()
        self.objects[key] = body

    def get(self, key: str, begin: int, size: int) -> bytes:
        self._use()
        return self.objects[key][begin:][:size]

    def copy(self, calls: int) -> None:
        self._calls_left = min(calls, 1000)
        record_id = self.distant.record.record_id()
        if self._upload is None or self._upload._folder != self.distant.record.folder:
            self._upload = RecordUpload(self.distant.record.folder, self._put)
        try:
            for _ in iter(self._upload.upload, True):
                self._check()
                self._use()
        except Cut:
            if calls % 2:
                self._upload = None
            self._calls_left = ALL
        self._check()
        if LIST in self.objects:
            manifest = Manifest.from_dict(json.loads(self.objects[LIST]))
            if manifest.record.record_id == record_id:
                RecordCopy(cluster_ref()).follow(manifest.record, lambda ranges: self._read(manifest, ranges))

    def _read(self, manifest: Manifest, ranges: Sequence[Range]) -> list[bytes]:
        """The first range, and where it is whole, more than that."""
        (data,) = record_bucket._reader(cast(Any, self), manifest)(ranges)
        return [data + b"beyond" if len(data) == ranges[0].size else data]

    def _check(self) -> None:
        """What the list names is whole in the bucket, and so is each artifact."""
        files = consistent(self.objects)["files"] if LIST in self.objects else {}
        for name in [name for name in files if name.endswith("/artifacts.json")]:
            for file in ArtifactList.from_dict(json.loads(files[name][2])).files:
                assert files[f"{name.removesuffix('.json')}/{file.name}"] == [file.size, file.sha256]


class Given(Way):
    """Each call that is cut is the end of a controller."""

    def __init__(self, distant: Distant) -> None:
        super().__init__(distant)
        self.folder = distant.record.folder.with_name("given")

    def copy(self, calls: int) -> None:
        if self.distant.run is not None:
            (self.folder / "current").unlink(missing_ok=True)  # the disk of the one before was lost in part
            self.distant.record.save(self.distant.run)
            give_record(Caller(Controller(Record(self.folder)), calls), self.distant.record.folder, 1.0)


WAYS: dict[str, type[Way]] = {"user's copy": UserCopy, "bucket": Bucket, "given": Given}


def copied(way: Way, calls: int) -> None:
    """The copy is updated, but for what is cut off."""
    way.copy(calls)


def torn(way: Way, writes: int) -> None:
    """What copies is killed while it writes."""
    with way.distant.torn_after(writes):
        way.copy(ALL)


def damaged(way: Way) -> None:
    """What arrives of artifacts is not what was sent."""

    def append(path: Path, data: bytes) -> None:
        agent_files.append(path, bytes(len(data)) if path.suffix == ".draft" else data)

    with pytest.MonkeyPatch.context() as patch, suppress(ValueError):
        patch.setattr(replica, "append", append)
        way.copy(ALL)


def spoiled(way: Way, place: int) -> None:
    """Output in the copy has become zeros. The list for the user's copy has no hashes of it."""
    paths = [path for path in sorted(way.folder.glob("runs/*/logs/*/*.log")) if original(way, path).exists()]
    if paths and not isinstance(way, UserCopy):
        path = paths[place % len(paths)]
        path.write_bytes(bytes(path.stat().st_size))
        way.copy(ALL)


def overtaken(way: Way, step: int, newest: int) -> None:
    """A newer checkpoint replaces one while that is linked, or copied. The bucket has one."""
    if way.distant.run:
        checkpoint(way.distant, step)
        way.copy(ALL)
        checkpoint(way.distant, step + 10)
        late_steps = iter([0, newest])

        def late(function: Callable[..., None]) -> Callable[..., None]:
            def call(*arguments: Any) -> None:
                function(*arguments)
                if step := next(late_steps, 0):
                    checkpoint(way.distant, step)

            return call

        with pytest.MonkeyPatch.context() as patch, suppress(ValueError):
            patch.setattr(os, "link", late(os.link))
            patch.setattr(replica, "append", late(agent_files.append))
            way.copy(ALL)


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


def rubbish(distant: Distant, data: bytes) -> None:
    """The controller's machine crashes while it writes events."""
    if distant.run:
        agent_files.append(distant.record.run_folder(distant.run.spec.id) / "events.jsonl", data)


def checkpoint(distant: Distant, step: int) -> None:
    """A newer checkpoint has replaced the one before. Some of its files have the same names."""
    if distant.run:
        run_folder, listed = distant.record.run_folder(distant.run.spec.id), []
        files = {"same": b"same", "checkpoint": f"c-{step:02}".encode(), f"c-{step % 10}.data": bytes([step]) * 130}
        for name, data in files.items():
            agent_files.write_whole(run_folder / "artifacts" / name, data)
            os.utime(run_folder / "artifacts" / name, ns=(step, step))
            version = "0" if name == "same" else str(step)
            listed.append(ManifestFile(name, len(data), version, hashlib.sha256(data).hexdigest()))
        save_manifest(run_folder, ArtifactList([ManifestArtifact("keras", f"c-{step}", "m", 0, listed)]))
        for path in (run_folder / "artifacts").iterdir():
            if path.name not in files:
                path.unlink()


COPIES = (copied, torn, damaged, spoiled, overtaken)
LINE, LONG = [(STDOUT, b"line\n")], [(STDOUT, b"x" * 99 + b"\n")]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just(Distant.submit), st.sampled_from(["one", "two"]), st.integers(1, 3)),
        st.tuples(st.just(Distant.print), st.integers(0, 2), CHUNKS),
        st.tuples(st.just(Distant.print), st.just(0), CHUNKS),
        st.tuples(st.just(Distant.shrink)),
        st.tuples(st.just(Distant.happen), st.text(max_size=20)),
        st.tuples(st.just(rubbish), st.binary(min_size=1, max_size=20)),
        st.tuples(st.just(fence), st.integers(0, 2), CHUNKS),
        st.tuples(st.just(forget), st.integers(0, 2)),
        st.tuples(st.just(checkpoint), st.integers(1, 9)),
        st.tuples(st.just(copied), st.integers(0, 12)),
        st.tuples(st.just(copied), st.just(ALL)),
        st.tuples(st.just(torn), st.integers(0, 8)),
        st.tuples(st.just(damaged)),
        st.tuples(st.just(spoiled), st.integers(0, 8)),
        st.tuples(st.just(overtaken), st.integers(1, 9), st.integers(1, 29)),
        st.tuples(st.just(Distant.begin_life)),
    ),
    min_size=4,
    max_size=20,
)

ONE, TWO = (Distant.submit, "one", 1), (Distant.submit, "two", 2)
PRINTED, WHOLE = (Distant.print, 0, LINE), (copied, ALL)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=examples(50))
@given(STEPS)
@example([ONE, PRINTED, WHOLE, PRINTED])
@example([ONE, (Distant.print, 0, LONG * 3), WHOLE, (forget, 0), (Distant.print, 0, LONG), (spoiled, 1)])
@example([ONE, PRINTED, TWO, (Distant.print, 1, LINE), (fence, 0, LINE), (Distant.shrink,), WHOLE])
@example([ONE, (checkpoint, 1), (torn, 5)])
@example([ONE, (checkpoint, 1), WHOLE, (checkpoint, 2), (copied, 5), (checkpoint, 3)])
@example([ONE, (checkpoint, 1), (damaged,), WHOLE, (overtaken, 2, 22), (overtaken, 3, 4)])
@example([ONE, PRINTED, (checkpoint, 1), WHOLE, (Distant.begin_life,), TWO, PRINTED, (copied, 3), WHOLE])
def test_a_copy_becomes_equal_whatever_happens_meanwhile(way: str, steps: list[tuple[Any, ...]]) -> None:
    with distant_record() as distant:
        copy = WAYS[way](distant)
        for action, *arguments in steps:
            with suppress(Cut, ConnectionError, RecordLost, RecordCopyError):
                action(copy if action in COPIES else distant, *arguments)
            copy.had.update({path: path.read_bytes() for path in distant.record.folder.glob("runs/*/logs/*/*")})
            check(copy)
        if not distant.run:
            return
        distant.run.result = RunResult(STOPPED, "moved", 2.0)
        distant.record.save(distant.run)
        distant.json("POST", "/files", {"runs": [""]})  # which searches the output
        copy.copy(ALL)
        check(copy)
        same(distant.record, Record(copy.folder), adds_events=way == "given")


def original(way: Way, path: Path) -> Path:
    return way.distant.record.folder / path.relative_to(way.folder)


def check(way: Way) -> None:
    """What the copy has is what the record has or had: whole pieces, and at most one of each task that is open. It stays."""
    copy, record = Record(way.folder), way.distant.record
    if not way.folder.exists() or copy.record_id() != record.record_id():
        return
    assert {*copy.runs()} <= {*record.runs()}
    open_pieces: dict[Path, int] = {}
    for path in way.folder.glob("runs/*/logs/*/*.log"):
        whole, data = way.had[original(way, path)], path.read_bytes()
        assert whole.startswith(data), path
        is_open = len(data) < len(whole) and original(way, path).exists()
        open_pieces[path.parent] = open_pieces.get(path.parent, 0) + is_open
    assert max(open_pieces.values(), default=0) <= 1, open_pieces
    complete = {copy.run_folder(it) for it in copy.runs() if load_manifest(copy.run_folder(it)).artifacts}
    present = {*way.folder.glob("runs/*/logs/*/*.log"), *complete}
    assert way.stored.get(record.record_id(), set()) <= present
    way.stored[record.record_id()] = present
    for run_id in copy.runs():
        for artifact in load_manifest(copy.run_folder(run_id)).artifacts:
            assert is_complete(copy.run_folder(run_id), artifact)
            for file in artifact.files:
                content = (copy.artifacts_folder(run_id) / file.name).read_bytes()
                assert hashlib.sha256(content).hexdigest() == file.sha256, file.name
