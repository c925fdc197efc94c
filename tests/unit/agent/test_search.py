"""The search in the output of a run: slow patterns hold nothing, and nothing is read twice."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.unit.printing import write
from tests.unit.simulation import World
from tests.waiting import until
from tfdeploy.agent.model.events import PATTERN_DISABLED, PATTERN_SLOW
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record import output_search, pattern_process
from tfdeploy.agent.record.output import Log, Reader
from tfdeploy.agent.record.output_lines import MAX_LINE, STDERR, STDOUT, Part, encode
from tfdeploy.agent.record.pattern_process import Matcher, Matches
from tfdeploy.agent.record.record import Record, RecordView, ViewRequest

SLOW = {"quadratic": r"(.*)accuracy: (\S+)", "exponential": r"(\w+\s?)*accuracy!"}


def test_a_pattern_too_slow_is_switched_off_and_others_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_search, "MAX_SLOW", 1)
    record, job = Record(tmp_path), World(workers=1).job
    log = record.log(job.spec.id, "worker-0")
    write(
        log, [(STDOUT, b"a" * 40 + b" accuracy\n")] + [(STDOUT, b"x" * 100_000 + b"\n")] * 50 + [(STDOUT, b"loss 1\n")]
    )
    patterns = {**SLOW, "loss": r"loss (\d)"}
    begin = time.process_time()
    found = record.search(job, patterns)
    assert found.metrics == {"loss": "1"}
    assert time.process_time() - begin < 10.0, "the controller's own process has matched"
    disabled = found.disabled
    assert SLOW["exponential"] in {event.state: event.reason for event in disabled}["exponential"]
    write(log, [(STDOUT, b"a" * 40 + b" accuracy\nloss 2\n")])
    found = record.search(job, patterns)
    assert (found.metrics, found.disabled) == ({"loss": "2"}, disabled), "it was tried again"


def test_a_long_line_is_searched_in_its_beginning_only(tmp_path: Path) -> None:
    record, job = Record(tmp_path), World(workers=1).job
    write(record.log(job.spec.id, "worker-0"), [(STDOUT, b"first 1 " + b"x" * 20_000 + b" last 2\n")])
    assert record.search(job, {"first": r"first (\d)", "last": r"last (\d)"}).metrics == {"first": "1"}


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the parts of logs that are read from now on."""
    read: list[int] = []
    whole = Log.read

    def counting(log: Log, position: int, size: int) -> bytes:
        content = whole(log, position, size)
        read.append(len(content))
        return content

    monkeypatch.setattr(Log, "read", counting)
    return read


def test_another_process_continues_where_this_one_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, patterns = World(workers=2).job, {"acc": r"acc: (\d)"}
    first = Record(tmp_path)
    first.save(job)
    log = first.log(job.spec.id, "worker-0")
    write(log, [(STDOUT, b"step 7 acc: 1\n")] * 2_000 + [(STDERR, b"acc: 2 and the rest of this")])
    found = first.search(job, patterns)
    assert found.metrics == {"acc": "2"}
    assert found.progress["worker-0"].step == 7
    read = reads(monkeypatch)
    for is_copy in (False, True):
        assert Record(tmp_path, is_copy).search(job, patterns) == found
    assert sum(read) == 0
    write(log, [(STDERR, b" line\nacc: 3\n")], begin=9_000.0)
    again, last = Record(tmp_path).search(job, patterns), encode(Part(9_000.0, STDERR, 1, b"acc: 3", True))
    assert (again.metrics, again.values["acc"].offset) == ({"acc": "3"}, log.end - len(last))
    assert sum(read) < 500
    other = Record(tmp_path).search(job, {"acc": r"acc: (2)"})
    assert (other.metrics, other.progress["worker-0"].step) == ({"acc": "2"}, 7), "all is searched again"
    assert sum(read) > log.end


@pytest.mark.parametrize("is_copy", [True, False])
def test_output_that_was_searched_and_is_not_there_any_more(tmp_path: Path, is_copy: bool) -> None:
    """A copy may be behind. In a record that was restored, other lines come in the place of what was lost."""
    job, patterns = World(workers=1).job, {"acc": r"acc: (\d)"}
    record = Record(tmp_path)
    record.save(job)
    log = record.log(job.spec.id, "worker-0")
    write(log, [(STDOUT, b"acc: 1\n"), (STDOUT, b"acc: 2\n")])
    assert record.search(job, patterns).metrics == {"acc": "2"}
    size = log.end // 2
    log.path(0).write_bytes(log.path(0).read_bytes()[:size])
    other = Record(tmp_path, is_copy)
    found = other.search(job, patterns)
    assert (found.metrics, found.values["acc"].offset) == (({"acc": "2"}, size) if is_copy else ({"acc": "1"}, 0))
    write(other.log(job.spec.id, "worker-0"), [(STDOUT, b"acc: 3\n")], attempt=2)
    assert other.search(job, patterns).metrics == {"acc": "2" if is_copy else "3"}


def test_a_speed_is_of_one_attempt(tmp_path: Path) -> None:
    job, record = World(workers=1).job, Record(tmp_path)
    log = record.log(job.spec.id, "worker-0")
    write(log, [(STDOUT, f"step {10 * number}\n".encode()) for number in range(5)], begin=100.0)
    assert record.search(job).progress["worker-0"].rate == 10.0
    write(log, [(STDOUT, b"step 90\n")], attempt=2, begin=106.0)
    seen = record.search(job).progress["worker-0"]
    assert (seen.rate, seen.step, seen.first, seen.before) == (None, 90, 90, 40)
    write(log, [(STDOUT, b"step 95\n")], attempt=2, begin=107.0)
    assert record.search(job).progress["worker-0"].rate == 5.0


TASKS = [[], {"worker-0": {"reader": {"position": "x", "rests": {}}}}]
DAMAGED = [b"\0" * 100, b"{}", *(json.dumps({"patterns": {"acc": r"acc: (\d)"}, "tasks": it}).encode() for it in TASKS)]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_position_is_no_position(tmp_path: Path, content: bytes) -> None:
    job, patterns = World(workers=1).job, {"acc": r"acc: (\d)"}
    record = Record(tmp_path)
    record.save(job)
    write(record.log(job.spec.id, "worker-0"), [(STDOUT, b"acc: 1\n")])
    found = record.search(job, patterns)
    assert found.metrics == {"acc": "1"}
    (record.run_folder(job.spec.id) / "search.json").write_bytes(content)
    assert Record(tmp_path, is_copy=True).search(job, patterns) == found


def test_of_a_progress_bar_without_newline_only_what_it_shows_is_stored(tmp_path: Path) -> None:
    record, job, patterns = Record(tmp_path), World(workers=1).job, {"percent": r"(\d+)%"}
    record.save(job)
    log = record.log(job.spec.id, "worker-0")
    for number in range(20):
        write(log, [(STDERR, b"\r%d%% " % number + b"#" * 2_000)])
        assert record.search(job, patterns).metrics == {"percent": f"{number}"}
    assert (record.run_folder(job.spec.id) / "search.json").stat().st_size < 8_000


def test_a_long_line_is_held_in_bounded_memory_and_its_length_is_known(tmp_path: Path) -> None:
    log = Log(tmp_path)
    reader = Reader(log)
    lines = []
    for _ in range(20):
        write(log, [(STDOUT, b"x" * 100_000)])
        lines += list(reader.more())
        assert all(len(line.content) <= MAX_LINE for line in reader.unfinished())
    write(log, [(STDOUT, b"\nnext\n")])
    lines += list(reader.more())
    assert [line.text for line in lines] == ["x" * 4_000 + "… (2000000 bytes)", "next"]
    assert len(lines[0].content) <= MAX_LINE


def test_the_process_does_not_get_the_secrets_of_the_program_that_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", "canary-7f3a")
    monkeypatch.setenv("TFDEPLOY_CLUSTER", "the mark")
    one = Matcher()
    try:
        path = Path(f"/proc/{one._started().pid}/environ")
        until(lambda: "the mark" in path.read_text(), "the process has its environment")
        environment = path.read_text()
    finally:
        one._end()
    assert "canary" not in environment


class Scripted:
    """A matcher for which the pattern `acc` is slow on each line with `slow`."""

    def __init__(self, record: Record, job: RunState, monkeypatch: pytest.MonkeyPatch) -> None:
        self.record, self.job = record, job
        self.tries: list[str] = []
        """The first line of each batch that was searched for `acc`."""
        record.save(job)
        monkeypatch.setattr(pattern_process.SHARED, "search", self._search)

    def _search(self, patterns: dict[str, str], lines: list[str]) -> Matches:
        is_slow = any("slow" in line for line in lines)
        self.tries += lines[:1] if "acc" in patterns else []
        matches = {name: (0, lines[0]) for name in patterns if name != "acc" or not is_slow}
        return Matches(matches, ["acc"] if is_slow and "acc" in patterns else [])

    def write(self, hostname: str, line: str) -> None:
        write(self.record.log(self.job.spec.id, hostname), [(STDOUT, f"{line}\n".encode())])

    def view(self) -> RecordView:
        return self.record.view(ViewRequest(), self.job)


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Five workers; worker-0 decides."""
    return Scripted(
        Record(tmp_path), World(workers=5, success="worker-0", metrics={"acc": "a", "loss": "l"}).job, monkeypatch
    )


def test_a_slow_line_switches_the_metric_off_neither_for_its_task_nor_for_others(scripted: Scripted) -> None:
    scripted.write("worker-1", "slow")
    view = scripted.view()
    assert "acc" not in view.metrics
    assert [(event.kind, event.task) for event in view.events] == [(PATTERN_SLOW, "worker-1")]
    scripted.write("worker-1", "from worker-1")
    assert scripted.view().metrics["acc"] == "from worker-1"
    scripted.write("worker-0", "from worker-0")
    assert scripted.view().metrics["acc"] == "from worker-0"


def test_a_pattern_is_switched_off_after_three_parts_that_were_too_slow(scripted: Scripted) -> None:
    for number in range(5):
        scripted.write(f"worker-{1 + number % 2}", f"slow {number}")
        view = scripted.view()
    assert scripted.tries == ["slow 0", "slow 1", "slow 2"]
    assert [(event.kind, event.task) for event in view.events] == [
        *((PATTERN_SLOW, hostname) for hostname in ("worker-1", "worker-2", "worker-1")),
        (PATTERN_DISABLED, ""),
    ]
    scripted.write("worker-0", "from worker-0")
    assert "acc" not in scripted.view().metrics


def test_output_that_takes_all_the_time_holds_no_other(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def match(patterns: dict[str, str], lines: list[str]) -> Matches:
        nonlocal now
        now += 5.0
        scripted.tries += lines[:1]
        return Matches({}, [])

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(pattern_process.SHARED, "search", match)
    for _ in range(3):
        for index in range(2):
            scripted.write(f"worker-{index}", f"from {index}")
        scripted.record.search(scripted.job, {"acc": "a"}, 3.0)
    assert scripted.tries == ["from 0", "from 1", "from 0"]


def test_a_matcher_that_reads_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_process, "_RESPONSE_SECONDS", 0.1)
    one = Matcher()
    process = one._started()
    process.send_signal(signal.SIGSTOP)
    assert one.search({"a": "b"}, ["x" * 1_000_000]) is None
    assert process.poll() is not None
    monkeypatch.undo()
    assert one.search({"a": "b"}, ["b"]) == Matches({"a": (0, "b")}, [])
    one._end()
