"""The progress of a task as one line, and read once, whichever process reads it; what is shown of a cluster in which nothing runs."""

from pathlib import Path

import pytest

from tests.clusters import ID
from tests.unit.cli.commands.test_runs import add, call, entry, state_folder
from tests.unit.printing import write
from tests.unit.simulation import World
from tfdeploy.agent.record.log_lines import STDERR, STDOUT
from tfdeploy.agent.record.log_segments import Stream
from tfdeploy.agent.record.record import Record
from tfdeploy.cli.commands.status import TrainingReader, progress_line
from tfdeploy.report.progress import Progress

__all__ = ["state_folder"]

COMMANDS = {"worker-0": "python train.py --steps=5000"}
NOTHING_TO_WATCH = "This is the last state: the training has ended, so there is nothing to watch.\n"


def test_a_million_steps_are_written_without_an_exponent() -> None:
    assert " 1000000/2000000 50%" in progress_line(Progress(step=1_000_000.0, goal=2_000_000.0), running=False)


@pytest.mark.parametrize("options", [[], ["--watch"]])
def test_a_destroyed_cluster_is_named_as_that(options: list[str], state_folder: Path) -> None:
    entry(ID, "mnist", state_folder, ended=3_000.0)
    add(state_folder / f"retained/mnist-{ID}/19700101T005000Z/record", 1_000.0, "0.91")
    text, messages = call("--cluster", ID, *options, verb="status")
    last = "The cluster was destroyed at 1970-01-01 00:50:00Z; this is its last record. `pulumi up` creates it again."
    assert text.splitlines().count(last) == 1
    assert messages == (NOTHING_TO_WATCH if options else "")


def test_a_run_that_has_ended_is_not_watched(state_folder: Path) -> None:
    add(Path(entry(ID, "mnist", state_folder).cluster["home"]) / "record", 1_000.0, "0.91")
    text, messages = call("--watch", verb="status")
    assert "destroyed" not in text
    assert messages == NOTHING_TO_WATCH


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """The copy of a record, with a log of 4,000 lines."""
    found = Record(tmp_path)
    found.save(World(workers=1).job)
    log = found.log(found.runs()[0], "worker-0")
    lines = [(STDOUT, f"step {number} loss {1 / number}\n".encode()) for number in range(1, 4_001)]
    write(log, [*lines, (STDERR, b"the beginning of")])
    return found


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read of a log returned."""
    sizes: list[int] = []
    read = Stream.read

    def counting(stream: Stream, position: int, limit: int) -> bytes:
        content = read(stream, position, limit)
        sizes.append(len(content))
        return content

    monkeypatch.setattr(Stream, "read", counting)
    return sizes


def observe(folder: Path) -> TrainingReader:
    """What another process reads."""
    record = Record(folder)
    reader = TrainingReader(record, record.runs()[0])
    reader.read(["worker-0"], COMMANDS)
    return reader


def test_a_second_observation_reads_only_what_is_new(record: Record, read_bytes: list[int]) -> None:
    first = observe(record.folder)
    assert sum(read_bytes) > 100_000
    first.store()
    read_bytes.clear()
    second = observe(record.folder)
    assert sum(read_bytes) == 0
    assert second.progress() == first.progress()
    write(record.log(record.runs()[0], "worker-0"), [(STDERR, b" step 4500\n")], begin=9_000.0)
    third = observe(record.folder).progress()["worker-0"]
    assert (third.step, third.goal, third.losses) == (4500, 5000, first.progress()["worker-0"].losses)
    assert sum(read_bytes) < 200


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\0" * 9, b'{"record_id": "x", "tasks": {"worker-0": [{}, {}]}}', b"[]"]
)
def test_a_damaged_position_is_no_position(record: Record, content: bytes) -> None:
    observe(record.folder).store()
    (record.run_folder(record.runs()[0]) / "progress.json").write_bytes(
        content.replace(b"x", record.record_id().encode())
    )
    assert observe(record.folder).progress()["worker-0"].step == 4000


def test_a_position_of_another_record_is_no_position(record: Record) -> None:
    observe(record.folder).store()
    record.set_record_id("another")
    assert observe(record.folder).progress()["worker-0"].step == 4000


def test_a_full_disk_ends_no_observation(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tfdeploy.cli.commands.status.write_whole", full)
    reader = observe(record.folder)
    reader.store()
    assert reader.progress()["worker-0"].step == 4000
