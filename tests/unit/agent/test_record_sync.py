"""A copy of a record that is brought on piece by piece becomes equal to it, whatever happens on the way."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.agent.distant import Cut, Distant
from tests.unit.printing import CHUNKS, folder
from tfdeploy.agent.record import log_segments, record_sync
from tfdeploy.agent.record.log import NAMES, STDERR, STDOUT
from tfdeploy.agent.record.record_sync import CopyChanges, CopyPosition

LIMIT = 60
SEGMENT = 64


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_sync, "_MAX_BYTES", LIMIT)
        patch.setattr(log_segments, "SEGMENT_BYTES", SEGMENT)
        patch.setattr(log_segments, "MAX_SEGMENTS", 10_000)
        yield


@pytest.fixture
def distant(tmp_path: Path) -> Distant:
    return Distant(tmp_path)


def check_same(distant: Distant) -> None:
    """The copy tells what the record tells."""
    record, mirror = distant.record, distant.mirror
    assert mirror.runs() == record.runs()
    assert mirror.record_id() == record.record_id()
    present = mirror.current()
    assert (present.spec.id if present else "") == (distant.job.spec.id if distant.job else "")
    for run in record.runs():
        assert distant.account(mirror, run) == distant.account(record, run)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("give"), st.sampled_from(["one", "two"]), st.integers(1, 3)),
        st.tuples(st.just("print"), st.integers(0, 2), CHUNKS),
        st.tuples(st.just("shrink"), st.just(None)),
        st.tuples(st.just("tell"), st.text(max_size=20)),
        st.tuples(st.just("look"), st.just(None)),
        st.tuples(st.just("cut"), st.integers(0, 4)),
        st.tuples(st.just("tear"), st.integers(0, 8)),
        st.tuples(st.just("repeat"), st.just(None)),
        st.tuples(st.just("live"), st.just(None)),
    ),
    max_size=14,
)


def do(distant: Distant, step: tuple[Any, ...]) -> None:
    match step:
        case "give", run, tasks:
            distant.give(run, tasks)
        case "print", place, chunks:
            distant.print(place, chunks)
        case "shrink", _:
            distant.shrink()
        case "tell", text:
            distant.tell(text)
        case "look", _:
            distant.look()
        case "cut", calls:
            distant.look(distant.cut_after(calls))
        case "tear", puts:
            with distant.torn_after(puts):
                distant.look()
        case "repeat", _:
            distant.look(distant.repeated)
        case "live", _:
            distant.begin_life()


@settings(max_examples=examples(100))
@given(STEPS)
def test_a_copy_becomes_equal_whatever_happens_on_the_way(steps: list[tuple[Any, ...]]) -> None:
    with folder() as place:
        distant = Distant(place)
        for step in steps:
            with suppress(Cut):
                do(distant, step)
            assert distant.promised() == []
        distant.look()
        if distant.job:
            present = distant.job.spec.id
            assert distant.account(distant.mirror, present) == distant.account(distant.record, present)
        record_sync.update_all_runs(distant.mirror, distant.call)
        check_same(distant)


def test_one_look_brings_all_of_the_present_run_however_long_it_is(distant: Distant) -> None:
    distant.give("one", 3)
    for place in range(3):
        distant.print(place, [(STDOUT, b"x" * 150), (STDERR, b"y" * 130)] * 10)
    distant.tell("something")
    distant.look()
    check_same(distant)


@pytest.mark.parametrize("size", range(1, 2 * SEGMENT, 7))
def test_what_begins_a_segment_is_not_left_for_the_next_look(distant: Distant, size: int) -> None:
    distant.give("one", 1)
    distant.print(0, [(STDOUT, b"x" * size)] * 5)
    distant.look()
    distant.print(0, [(STDOUT, b"y")] * 3)
    distant.look()
    check_same(distant)


@pytest.mark.parametrize("is_followed", [False, True], ids=["current run", "earlier run"])
def test_the_last_lines_of_a_removed_task_are_in_every_copy(distant: Distant, is_followed: bool) -> None:
    distant.give("one", 3)
    distant.print(2, [(STDOUT, b"first\n")])
    distant.look()
    distant.print(2, [(STDOUT, b"last words " * 30)])
    distant.print(1, [(STDERR, b"never looked at\n")])
    distant.shrink()
    distant.shrink()
    if is_followed:
        distant.give("two", 1)
    distant.look()
    record_sync.update_all_runs(distant.mirror, distant.call)
    job = distant.mirror.load("one")
    assert job is not None
    assert [*job.tasks] == ["worker-0"]
    assert distant.mirror.hostnames(job) == ["worker-0", "worker-1", "worker-2"]
    ends = {name: distant.mirror.log("one", name).streams["stdout"].end for name in distant.mirror.hostnames(job)}
    assert ends == {"worker-0": 0, "worker-1": 0, "worker-2": 6 + 330}
    assert distant.mirror.log("one", "worker-1").streams["stderr"].span(0, 99) == b"never looked at\n"
    check_same(distant)


def test_a_look_brings_the_end_of_the_run_before(distant: Distant) -> None:
    distant.give("one", 1)
    distant.look()
    distant.print(0, [(STDOUT, b"last words\n")])
    distant.tell("it ended")
    distant.give("two", 2)
    distant.look()
    check_same(distant)


def test_runs_that_nobody_looked_at_come_at_the_end(distant: Distant) -> None:
    for run in ("one", "two", "three"):
        distant.give(run, 2)
        distant.print(1, [(STDOUT, run.encode() * 100)] * 4)
        distant.tell(f"{run} begins")
    distant.look()
    assert distant.mirror.runs() == ["three"]
    record_sync.update_all_runs(distant.mirror, distant.call)
    check_same(distant)


def test_what_the_record_has_forgotten_is_a_gap_in_the_copy(distant: Distant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_segments, "MAX_SEGMENTS", 3)
    distant.give("one", 1)
    distant.print(0, [(STDOUT, b"a" * 10)])
    distant.look()
    distant.print(0, [(STDOUT, bytes([65 + number]) * 60) for number in range(20)])
    distant.look()
    first, copy = (record.log("one", "worker-0").streams["stdout"] for record in (distant.record, distant.mirror))
    assert first.start > 10
    assert copy.span(first.start, first.end) == first.span(first.start, first.end)
    assert copy.end == first.end


def test_a_gap_in_the_record_is_a_gap_in_the_copy(distant: Distant) -> None:
    distant.give("one", 1)
    stream = distant.record.log("one", "worker-0").streams["stdout"]
    stream.put(0, b"before")
    stream.put(100, b"after")
    distant.look()
    check_same(distant)
    copy = distant.mirror.log("one", "worker-0").streams["stdout"]
    assert (copy.end, copy.span(100, 105)) == (105, b"after")


@pytest.mark.parametrize("calls", range(1, 9))
def test_at_every_moment_the_index_tells_only_of_what_has_come(distant: Distant, calls: int) -> None:
    distant.give("one", 1)
    distant.print(0, [(STDOUT, b"x" * 50), (STDERR, b"y" * 80)] * 3)
    with suppress(Cut):
        distant.look(distant.cut_after(calls))
    assert distant.promised() == []


def test_an_answer_that_comes_twice_is_taken_once(distant: Distant) -> None:
    distant.give("one", 1)
    distant.tell("something")
    distant.print(0, [(STDOUT, b"x" * 50)])
    distant.look(distant.repeated)
    check_same(distant)


def test_a_copy_of_a_run_that_the_record_lacks_gets_the_present_one_from_its_beginning(distant: Distant) -> None:
    distant.give("one", 1)
    distant.tell("something")
    distant.print(0, [(STDOUT, b"x" * 50)])
    far = dict.fromkeys(NAMES, 1000)
    answer = distant.call(CopyPosition(distant.record.record_id(), "gone", {"worker-0": far}, 1_000))
    assert (answer.run_id, answer.events_at) == ("one", 0)
    assert {name: piece[0] for name, piece in answer.logs["worker-0"].items()} == {"stdout": 0, "index": 0}


def test_the_account_of_another_life_is_put_aside(distant: Distant) -> None:
    distant.give("one", 2)
    distant.print(0, [(STDOUT, b"x" * 200)])
    distant.look()
    distant.begin_life()
    distant.give("one", 1)
    distant.print(0, [(STDERR, b"y")])
    distant.look()
    check_same(distant)


def test_another_life_that_begins_while_all_runs_are_brought_does_no_harm(distant: Distant) -> None:
    distant.give("one", 1)
    distant.give("two", 1)
    distant.look()
    before = distant.account(distant.mirror, "two")

    def call(ask: CopyPosition) -> CopyChanges:
        if ask.run_id == "one":
            distant.begin_life()
            distant.give("one", 1)
            distant.print(0, [(STDOUT, b"strange")])
        return distant.call(ask)

    record_sync.update_all_runs(distant.mirror, call)
    assert distant.account(distant.mirror, "two") == before
    assert b"strange" not in b"".join(path.read_bytes() for path in distant.mirror.folder.rglob("*.log"))


def test_nothing_is_made_of_nothing(distant: Distant) -> None:
    answer = distant.look()
    assert (answer.run_state, answer.current, answer.runs) == (None, "", [])
    assert distant.mirror.runs() == []
    assert distant.mirror.last_alive() == 0.0


def test_a_look_is_the_last_sign_of_life(distant: Distant) -> None:
    distant.give("one", 1)
    distant.look()
    assert distant.mirror.last_alive() > 0.0


def test_no_answer_is_much_larger_than_the_limit(distant: Distant) -> None:
    distant.give("one", 2)
    for place in (0, 1):
        distant.print(place, [(STDOUT, b"x" * 1_000), (STDERR, b"y" * 1_000)])
    answer = distant.call(CopyPosition(distant.record.record_id()))
    assert answer.more
    taken = [len(piece[1]) for pieces in answer.logs.values() for piece in pieces.values()]
    assert sum(taken) <= 3 * (LIMIT * 4 // 3 + 4)
