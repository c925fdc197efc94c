"""The form of a task's output: bytes as they were printed, lines that `grep` reads, pieces that one launcher cuts."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.printing import CHUNKS, Chunk, all_lines, folder, printed, seen, write
from tests.unit.simulation import World
from tfdeploy.agent.record import output as module
from tfdeploy.agent.record.output import DIFFERS, Log, Reader, Spool
from tfdeploy.agent.record.output_lines import (
    MAX_FORM,
    MAX_PART,
    PART_SECONDS,
    PIPES,
    STDERR,
    STDOUT,
    Encoder,
    Joiner,
    Part,
    encode,
    parse,
)
from tfdeploy.agent.record.output_lines import printed as printed_in
from tfdeploy.agent.record.record import Record

LINE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (stdout|stderr) [FP]:[0-9]+ [^\n]*\n")
PIECE = 200


@pytest.fixture(autouse=True, scope="module")
def small_sizes() -> Iterator[None]:
    """So small that every border is crossed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_TAIL_BYTES", 100)
        patch.setattr(module, "PIECE_BYTES", PIECE)
        patch.setattr(module, "MAX_PIECES", 1_000)
        yield


def test_a_line_is_text_that_people_read() -> None:
    line = encode(Part(1_764_315_877.5, STDERR, 3, b"step 1\r\0\xff", True))
    assert line == b"2025-11-28T07:44:37.500000Z stderr F:3 step 1\r\0\xff\n"


@given(st.floats(0, 4e9), st.sampled_from([*PIPES]), st.integers(0, 9_999_999), st.binary(), st.booleans())
def test_a_line_is_read_as_it_was_written(at: float, pipe: int, attempt: int, text: bytes, is_end: bool) -> None:
    part = Part(round(at, 6), pipe, attempt, text.replace(b"\n", b"\r"), is_end)
    line = encode(part)
    read = parse(line[:-1])
    assert read is not None
    assert read._replace(at=part.at) == part
    assert abs(read.at - part.at) < 2e-6
    assert len(line) <= len(part.text) + MAX_FORM


@given(CHUNKS, st.lists(st.booleans(), min_size=16, max_size=16))
def test_the_bytes_of_a_stream_are_its_texts_joined(chunks: list[Chunk], pauses: list[bool]) -> None:
    """Two streams that alternate in parts; a program that ends without a newline."""
    encoders, output = {pipe: Encoder(pipe, 1) for pipe in PIPES}, b""
    for at, ((pipe, data), pause) in enumerate(zip(chunks, pauses, strict=False)):
        output += encoders[pipe].add(data, at)
        output += b"".join(encoder.rest() for encoder in encoders.values()) if pause else b""
    output += b"".join(encoder.rest() for encoder in encoders.values())
    assert b"".join(match[0] for match in LINE.finditer(output)) == output
    for pipe in PIPES:
        assert printed_in(output, pipe) == printed(chunks, pipe)
        ended = [part for line in output.split(b"\n") if (part := parse(line)) and part.pipe == pipe]
        assert not ended or ended[-1].is_end == printed(chunks, pipe).endswith(b"\n")


@pytest.mark.parametrize("data", [bytes(range(256)) * 40, b"x" * 5_000_000, b"\n" * 1000, b"\0" * 70_000 + b"\n"])
def test_no_line_of_the_record_is_long_and_all_values_are_stored(data: bytes) -> None:
    encoder = Encoder(STDOUT, 1)
    output = b"".join(encoder.add(data[at : at + 100_000], 0.0) for at in range(0, len(data), 100_000)) + encoder.rest()
    assert printed_in(output, STDOUT) == data
    assert max(map(len, output.split(b"\n"))) < MAX_PART + MAX_FORM
    assert Encoder(STDOUT, 1).add(b"x" * MAX_PART + b"\n", 0.0).count(b"\n") == 1, "what is not too long is one line"


def test_what_waits_for_its_newline_becomes_a_part_with_the_time_of_its_first_byte() -> None:
    encoder = Encoder(STDERR, 1)
    assert encoder.add(b"\r10%", 100.0) == b""
    assert encoder.add(b"\r20%", 100.1) == b""
    assert encoder.rest(100.0 + PART_SECONDS - 0.01) == b""
    part = parse(encoder.rest(100.0 + PART_SECONDS)[:-1])
    assert part == Part(100.0, STDERR, 1, b"\r10%\r20%", False)
    assert encoder.rest(200.0) == b""


@given(CHUNKS)
def test_every_byte_is_kept_and_lines_are_what_newlines_part_in_each_pipe(chunks: list[Chunk]) -> None:
    with folder() as place:
        log = Log(place)
        write(log, chunks)
        for pipe in PIPES:
            assert log.printed(pipe) == printed(chunks, pipe)
            contents = [line.content for line in all_lines(log) if line.pipe == pipe]
            *whole, rest = printed(chunks, pipe).split(b"\n")
            assert contents == [*whole, *[rest][: len(rest)]]


@given(CHUNKS, st.integers(1, 12))
def test_a_tail_is_the_end_of_the_whole(chunks: list[Chunk], count: int) -> None:
    with folder() as place:
        log = Log(place)
        write(log, chunks)
        assert seen(log.tail(count)) == seen(all_lines(log)[-count:])


@given(CHUNKS, st.integers(0, 2000))
def test_the_next_line_begins_after_the_next_newline_wherever_one_starts(chunks: list[Chunk], at: int) -> None:
    with folder() as place:
        log = Log(place)
        write(log, [(pipe, data.replace(b"\n", b"") + b"\n") for pipe, data in chunks])
        begin = log._next_line(min(at, log.end))
        lines = list(Reader(log, begin).more())
        assert lines == list(Reader(log).more())[len(chunks) - len(lines) :]
        assert not log.damage


REDRAWN = st.lists(
    st.sampled_from([b"\r", b"a", b"50%", b"\b", b"\x1b", b"\x1b[", b"K", b"2K", b"G", b"\x1b[31m", b"\xc3", b"\xa9"])
).map(b"".join)


@given(st.lists(REDRAWN, min_size=2, max_size=5))
@example([b"20%\r\x1b[31m", b"\x1b[0m"])
def test_what_a_terminal_shows_is_the_same_without_what_is_hidden_already(parts: list[bytes]) -> None:
    whole, shown = Joiner(), Joiner()
    for number, text in enumerate([*parts, b""]):
        part = Part(1.0, STDOUT, 1, text, number == len(parts))
        lines, shown_lines = list(whole.add(part)), list(shown.add(part))
        shown = Joiner(shown.state(shown_only=True))
        assert [line.text for line in lines] == [line.text for line in shown_lines]
        assert [line.text for line in whole.unfinished()] == [line.text for line in shown.unfinished()]


@given(CHUNKS, st.integers(1, PIECE))
@example([(STDOUT, b"x" * 161)] * 2, PIECE)  # cut short before the newline that ends the piece
def test_a_piece_is_whole_lines_and_is_named_by_the_offset_of_its_first_byte(chunks: list[Chunk], count: int) -> None:
    with folder() as place:
        output = b"".join(Encoder(pipe, 1).add(data + b"\n", 1.0) for pipe, data in chunks)
        spool, rest = Spool(place, {}), output
        while rest:  # the rest of a line after a write that was cut short
            rest = rest[spool.write(rest[:count]) :]
        sizes = spool.sizes()
        for (first, size), (following, _) in pairwise(sizes.items()):
            assert following == first + size
            assert size >= PIECE
        pieces = [spool.path(first).read_bytes() for first in sizes]
        assert b"".join(pieces) == output
        assert all(piece.endswith(b"\n") and piece.rfind(b"\n", 0, -1) + 1 < PIECE for piece in pieces)


@given(CHUNKS, st.one_of(st.binary(max_size=50), st.integers(1, 50_000).map(bytes)))
def test_a_tail_without_newline_or_of_zeros_is_cut_off_by_who_writes_next(chunks: list[Chunk], tail: bytes) -> None:
    with folder() as place:
        log = Log(place)
        write(log, chunks)
        before = [log.printed(pipe) for pipe in PIPES]
        (place / "x").touch()
        with log.path((log.pieces() or [0])[-1]).open("ab") as file:
            file.write(tail.replace(b"\n", b"") or encode(Part(1.0, STDOUT, 1, b"te", True))[:-1])
        assert [log.printed(pipe) for pipe in PIPES] == before
        write(log, [(STDOUT, b"\nnext\n")])
        assert [log.printed(pipe) for pipe in PIPES] == [before[0] + b"\nnext\n", before[1]]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 400)), max_size=12))
def test_a_copy_is_whole_after_repeated_and_overlapping_parts(parts: list[tuple[float, int]]) -> None:
    data = b"".join(encode(Part(1.0, STDOUT, 1, b"line %d" % number, True)) for number in range(5))
    with folder() as place:
        copy = Log(place)
        for where, size in parts:
            at = int(copy.size(0) * where)
            assert copy.store(0, at, data[at : at + size]) == copy.size(0)
        assert copy.store(0, len(data) + 1, b"x\n") == copy.size(0), "never without what is before it"
        copy.store(0, copy.size(0), data[copy.size(0) :])
        assert copy.path(0).read_bytes() == data


def test_the_same_place_with_other_bytes_is_refused(tmp_path: Path) -> None:
    one, two = (encode(Part(float(at), STDOUT, 1, text, True)) for at, text in enumerate((b"1", b"2")))
    log = Log(tmp_path)
    log.store(0, 0, one)
    log.store(100, 100, one)
    for first, at in ((0, 0), (0, len(one) - 1), (10, 10), (0, len(one))):
        assert log.store(first, at, two * 3) == DIFFERS
    assert [line.text for line in Reader(log).more()] == ["1", "1"]
    assert log.sizes() == {0: len(one), 100: len(one)}


def test_pieces_arrive_in_any_order_and_may_be_missing(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for number in (3, 1, 0):
        log.store(number * 1000, number * 1000, encode(Part(1.0, STDOUT, 1, b"%d" % number, True)))
    assert [line.text for line in all_lines(log)] == ["0", "1", "3"]
    assert [line.text for line in log.tail(2)] == ["1", "3"]


def test_no_line_is_lost_when_the_next_piece_begins_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, read = Log(tmp_path), Log.read
    first, rest, following = ([(STDOUT, text * PIECE + b"\n")] for text in (b"1", b"2", b"3"))
    monkeypatch.setattr(module, "PIECE_BYTES", 2 * PIECE)
    write(log, first)
    reader = Reader(log)
    lines = list(reader.more())

    def read_late(log: Log, position: int, size: int) -> bytes:
        content = read(log, position, size)
        monkeypatch.setattr(Log, "read", read)
        write(log, rest + following)
        return content

    monkeypatch.setattr(Log, "read", read_late)
    lines += [*reader.more(), *reader.more()]
    assert len(log.pieces()) == 2
    assert [line.text[0] for line in lines] == ["1", "2", "3"]


def test_the_oldest_pieces_are_deleted_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PIECES", 2)
    spool = Spool(tmp_path, {})
    for number in range(50):
        spool.write(encode(Part(1.0, STDOUT, 1, b"line %d" % number, True)))
    texts = [line.text for line in all_lines(spool)]
    assert texts == [f"line {number}" for number in range(50)][-len(texts) :]
    assert len(spool.pieces()) == 2
    assert spool.lost_bytes == sum(len(f"line {number}\n") for number in range(50 - len(texts)))


def test_an_unfinished_line_of_a_killed_attempt_ends_where_the_next_begins(tmp_path: Path) -> None:
    log = Log(tmp_path)
    write(log, [(STDOUT, b"step 7"), (STDERR, b"warn")], attempt=1)
    write(log, [(STDOUT, b"step 1\n"), (STDERR, b"ing\n")], attempt=2, begin=9.0)
    assert [(line.attempt, line.text) for line in all_lines(log)] == [
        (1, "step 7"),
        (2, "step 1"),
        (1, "warn"),
        (2, "ing"),
    ]


@pytest.fixture
def begins(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where the readers of tails begin from now on."""
    begins: list[int] = []

    class Watched(Reader):
        def __init__(self, log: Log, begin: int = 0) -> None:
            begins.append(begin)
            super().__init__(log, begin)

    monkeypatch.setattr(module, "Reader", Watched)
    return begins


def test_a_tail_behind_a_progress_bar_reads_only_a_little(tmp_path: Path, begins: list[int]) -> None:
    log = Log(tmp_path)
    write(log, [(STDERR, b"\r%d%%" % number) for number in range(100)])
    assert [line.text for line in log.tail(1)] == ["99%"]
    assert len(begins) == 1
    assert log.end - begins[0] < 100


def test_a_tail_after_much_output_of_the_other_stream_reads_only_a_little(
    tmp_path: Path, begins: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_TAIL", 1_600)
    log = Log(tmp_path)
    write(log, [(STDOUT, b"step\n") for _ in range(400)] + [(STDERR, b"Traceback:\nno such file\n")])
    assert [line.text for line in log.tail(3)] == ["step", "Traceback:", "no such file"]
    assert log.end - min(begins) <= 1_600


@pytest.mark.parametrize(
    ("chunks", "patterns", "found"),
    [
        (
            [(STDOUT, b"a: 1\na: 2 a: 3\n"), (STDERR, b"a: 4\n"), (STDOUT, b"b\n")],
            {"a": r"a: (\d)", "c": "c"},
            {"a": "4"},
        ),
        ([(STDOUT, b"a: 1\n")], {"a": r"a: \d", "b": r"(a): (\d)"}, {"a": "a: 1", "b": "a"}),
        ([(STDOUT, b"a: 1\na: "), (STDOUT, b"2")], {"a": r"a: (\d)"}, {"a": "2"}),
        ([(STDERR, b"a: 1"), (STDOUT, b"a: 2\n")], {"a": r"a: (\d)"}, {"a": "2"}),
        ([(STDOUT, b"a:\n1\n")], {"a": r"a:\s(\d)"}, {}),
    ],
    ids=["last", "without a group", "unfinished", "later than an unfinished one", "over a newline"],
)
def test_the_last_match_wins(
    tmp_path: Path, chunks: list[Chunk], patterns: dict[str, str], found: dict[str, str]
) -> None:
    record, run = Record(tmp_path), World(workers=1).job
    write(record.log(run.spec.id, "worker-0"), chunks)
    assert record.search(run, patterns).metrics == found
