"""From the bytes of two pipes back to lines, and to the last match of a pattern."""

from collections.abc import Iterator, Sequence
from itertools import cycle, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.printing import CHUNKS, Chunk, all_lines, folder, printed, seen, write
from tfdeploy.agent.record import log_lines as module
from tfdeploy.agent.record import log_segments as stream_module
from tfdeploy.agent.record.log_lines import ENTRY_BYTES, NAMES, PIPES, STDERR, STDOUT, Line, Log, Reader, entry
from tfdeploy.agent.record.log_matches import LogMatches


@pytest.fixture(autouse=True, scope="module")
def small_sizes() -> Iterator[None]:
    """So small that every border is crossed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 3)
        patch.setattr(module, "_TAIL_BLOCK", 2)
        patch.setattr(module, "_AHEAD", 64)
        patch.setattr(stream_module, "SEGMENT_BYTES", 90)
        patch.setattr(stream_module, "MAX_SEGMENTS", 1_000)
        yield


@given(CHUNKS)
def test_every_byte_of_both_pipes_is_kept(chunks: list[Chunk]) -> None:
    with folder() as place:
        log = Log(place)
        write(log, chunks)
        for pipe, name in PIPES.items():
            assert log.streams[name].span(0, log.streams[name].end) == printed(chunks, pipe)


@given(CHUNKS)
def test_lines_are_what_newlines_part_in_each_pipe(chunks: list[Chunk]) -> None:
    with folder() as place:
        log = Log(place)
        write(log, chunks)
        for pipe in PIPES:
            contents = [line.content for line in all_lines(log) if line.pipe == pipe]
            *whole, rest = printed(chunks, pipe).split(b"\n")
            assert contents == [*whole, *[rest][: len(rest)]]


@given(CHUNKS, st.integers(1, 12))
def test_a_tail_is_the_end_of_the_whole(chunks: list[Chunk], count: int) -> None:
    with folder() as place:
        log = Log(place)
        write(log, chunks)
        assert seen(log.tail(count)) == seen(all_lines(log)[-count:])


@given(CHUNKS, st.lists(st.integers(1, 120), min_size=1, max_size=8))
def test_a_copy_sent_in_pieces_of_any_size_reads_the_same_as_it_comes(chunks: list[Chunk], sizes: list[int]) -> None:
    with folder() as here, folder() as there:
        log, copy = Log(here), Log(there)
        write(log, chunks)
        reader = Reader(copy)
        found: list[Line] = []
        for name in NAMES:
            for _ in send(log, copy, name, sizes):
                found += reader.more()
        assert found == list(Reader(log).more())
        assert copy.tail(3) == log.tail(3)


def send(log: Log, copy: Log, name: str, sizes: Sequence[int]) -> Iterator[None]:
    """Bring a copy of one stream up to date in pieces of these sizes, which overlap a little."""
    source, target = log.streams[name], copy.streams[name]
    for size in cycle(sizes):
        if target.end == source.end:
            return
        begin = max(0, target.end - size % 3)
        target.put(begin, source.span(begin, target.end + size))
        yield


@given(CHUNKS, st.integers(1, 6))
def test_reading_as_it_comes_gives_the_same_lines_as_reading_at_the_end(chunks: list[Chunk], step: int) -> None:
    with folder() as place:
        log = Log(place)
        reader = Reader(log)
        found: list[Line] = []
        for begin in range(0, len(chunks), step):
            write(log, chunks[begin : begin + step], begin=begin)
            found += reader.more()
        whole = Reader(log)
        assert found == list(whole.more())
        assert reader.unfinished() == whole.unfinished()


def test_reading_goes_on_behind_a_gap_in_the_index(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.streams["stdout"].put(0, b"one\ntwo\nthree\n")
    log.streams["index"].put(0, entry(1.0, STDOUT, 1, 0, 4))
    torn = b"x" * (ENTRY_BYTES - 7)
    log.streams["index"].put(5 * ENTRY_BYTES + 7, torn + entry(1.0, STDOUT, 1, 8, 6))
    assert [line.text for line in all_lines(log)] == ["one", "three"]


def test_what_was_forgotten_leaves_the_rest_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "MAX_SEGMENTS", 2)
    log = Log(tmp_path)
    write(log, [(STDOUT, b"line %d\n" % number) for number in range(50)])
    assert log.streams["index"].start > 0
    texts = [line.text for line in all_lines(log)]
    assert texts[-1] == "line 49"
    assert texts == [f"line {number}" for number in range(50)][-len(texts) :]
    assert [line.text for line in log.tail(2)] == ["line 48", "line 49"]


def test_what_was_forgotten_in_a_copy_leaves_the_rest_readable_wherever_it_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, copy = Log(tmp_path / "log"), Log(tmp_path / "copy")
    write(log, [(STDOUT, b"line %d\n" % number) for number in range(50)])
    for _ in send(log, copy, "stdout", [10_000]):
        pass
    monkeypatch.setattr(stream_module, "MAX_SEGMENTS", 3)
    for _ in send(log, copy, "index", [7]):
        pass
    assert copy.streams["index"].start % ENTRY_BYTES
    texts = [line.text for line in all_lines(copy)]
    assert texts == [f"line {number}" for number in range(50 - len(texts), 50)]
    assert [line.text for line in copy.tail(30)] == texts


def test_a_tail_behind_a_progress_bar_reads_only_a_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begins: list[int] = []

    class Watched(Reader):
        def __init__(self, log: Log, begin: int = 0) -> None:
            begins.append(begin)
            super().__init__(log, begin)

    log = Log(tmp_path)
    write(log, [(STDERR, b"\r%d%%" % number) for number in range(100)])
    monkeypatch.setattr(module, "Reader", Watched)
    assert [line.text for line in log.tail(1)] == ["99%"]
    assert begins == [98 * ENTRY_BYTES]


def test_an_unfinished_line_of_a_killed_attempt_ends_where_the_next_begins(tmp_path: Path) -> None:
    log = Log(tmp_path)
    write(log, [(STDOUT, b"step 7"), (STDERR, b"warn")], attempt=1)
    write(log, [(STDOUT, b"step 1\n"), (STDERR, b"ing\n")], attempt=2, begin=9.0)
    assert [(line.attempt, line.text) for line in all_lines(log)] == [
        (1, "step 7"),
        (1, "warn"),
        (2, "step 1"),
        (2, "ing"),
    ]


def test_lines_stand_in_the_order_of_time_whichever_pipe_they_came_through(tmp_path: Path) -> None:
    log = Log(tmp_path)
    write(log, [(STDERR, b"unfinished"), (STDOUT, b"a\n"), (STDERR, b" still"), (STDOUT, b"b\n")])
    assert [line.text for line in log.tail(9)] == ["a", "unfinished still", "b"]
    assert [line.text for line in log.tail(1)] == ["b"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        (b"plain", "plain"),
        (b"windows\r", "windows"),
        (b"10%\r20%\r30%", "30%"),
        (b"10%\r20%\r", "20%"),
        (b"caf\xe9", "caf\ufffd"),
        (b"caf\xc3\xa9", "café"),
        (b"x" * 70_000, "x" * 4_000 + "… (70000 bytes)"),
    ],
)
def test_a_line_is_shown_as_a_terminal_would(content: bytes, text: str) -> None:
    assert Line(0.0, STDOUT, 1, content).text == text


def latest(place: Path, chunks: Sequence[Chunk], **patterns: str) -> dict[str, str]:
    log = Log(place)
    write(log, chunks)
    return LogMatches(log, patterns).latest()


def test_the_last_match_wins(tmp_path: Path) -> None:
    chunks = [(STDOUT, b"acc: 1\nacc: 2 acc: 3\n"), (STDERR, b"acc: 4\n"), (STDOUT, b"nothing\n")]
    assert latest(tmp_path, chunks, a=r"acc: (\d)", none="absent") == {"a": "4"}


def test_without_a_group_the_whole_match_counts(tmp_path: Path) -> None:
    assert latest(tmp_path, [(STDOUT, b"acc: 1\n")], a=r"acc: \d", b=r"(acc): (\d)") == {"a": "acc: 1", "b": "acc"}


def test_an_unfinished_line_counts(tmp_path: Path) -> None:
    assert latest(tmp_path, [(STDOUT, b"acc: 1\nacc: "), (STDOUT, b"2")], a=r"acc: (\d)") == {"a": "2"}


def test_an_unfinished_line_does_not_win_over_a_later_one(tmp_path: Path) -> None:
    assert latest(tmp_path, [(STDERR, b"acc: 1"), (STDOUT, b"acc: 2\n")], a=r"acc: (\d)") == {"a": "2"}


def test_a_match_goes_over_no_newline(tmp_path: Path) -> None:
    assert latest(tmp_path, [(STDOUT, b"acc:\n1\n")], a=r"acc:\s(\d)") == {}


@given(CHUNKS, st.integers(1, 5))
def test_matching_as_it_comes_gives_the_same_as_matching_at_the_end(chunks: list[Chunk], step: int) -> None:
    patterns = {"a": "acc: (1)?", "b": "b(c)", "any": "[^\r]+"}
    with folder() as place:
        log = Log(place)
        matches = LogMatches(log, patterns)
        for begin, end in pairwise([*range(0, len(chunks), step), len(chunks)]):
            write(log, chunks[begin:end], begin=begin)
            assert matches.latest() == LogMatches(log, patterns).latest()
