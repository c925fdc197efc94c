"""Streams keep every byte in its place, however it came."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.printing import folder
from tfdeploy.agent.record import log_segments as module
from tfdeploy.agent.record.log_segments import Stream

SEGMENT = 64
KEPT = 3


@pytest.fixture(autouse=True, scope="module")
def small_segments() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SEGMENT_BYTES", SEGMENT)
        patch.setattr(module, "MAX_SEGMENTS", KEPT)
        yield


def everything(stream: Stream) -> bytes:
    return stream.span(stream.start, stream.end)


def files(place: Path) -> str:
    """The segment files and their sizes, a line each."""
    rows = sorted((int(path.name.split(".")[1]), path) for path in place.iterdir())
    return "\n".join(f"{path.name} {path.stat().st_size}" for _, path in rows)


@given(st.lists(st.binary(max_size=30), max_size=4))
def test_what_is_put_at_the_end_is_read_back_byte_for_byte(pieces: list[bytes]) -> None:
    with folder() as place:
        stream = Stream(place, "stdout")
        for piece in pieces:
            assert stream.put(stream.end, piece) == stream.end
        assert everything(stream) == b"".join(pieces)


@given(st.binary(max_size=150), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60)), max_size=12))
def test_a_copy_is_whole_after_repeated_overlapping_and_torn_pieces(
    data: bytes, pieces: list[tuple[float, int]]
) -> None:
    with folder() as place:
        for where, length in pieces:
            copy = Stream(place, "stdout")
            begin = int(copy.end * where)
            assert copy.put(begin, data[begin : begin + length]) == copy.end
        copy = Stream(place, "stdout")
        copy.put(copy.end, data[copy.end :])
        assert everything(copy) == data


def test_a_repeated_piece_is_passed_over(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "stdout")
    assert [stream.put(0, b"abc"), stream.put(0, b"abc"), stream.put(1, b"bcd"), stream.put(0, b"a")] == [3, 3, 4, 4]
    assert everything(stream) == b"abcd"


def test_a_new_segment_begins_when_the_last_is_full(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "stdout")
    for _ in range(5):
        stream.put(stream.end, b"x" * 40)
    assert files(tmp_path) == "stdout.0.log 80\nstdout.80.log 80\nstdout.160.log 40"


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=30))
def test_the_oldest_segments_are_forgotten_and_the_rest_stays_in_its_place(pieces: list[bytes]) -> None:
    with folder() as place:
        stream = Stream(place, "stdout")
        for piece in pieces:
            stream.put(stream.end, piece)
        data = b"".join(pieces)
        assert stream.end == len(data)
        assert everything(stream) == data[stream.start :]
        assert len(list(place.iterdir())) <= KEPT
        assert stream.start == 0 or stream.end - stream.start > SEGMENT


def test_what_was_forgotten_is_not_read(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "stdout")
    for number in range(8):
        stream.put(stream.end, bytes([65 + number]) * SEGMENT)
    assert stream.start == 5 * SEGMENT
    assert stream.read(0, 10) == b""
    assert stream.span(0, 6 * SEGMENT) == b"F" * SEGMENT


def test_a_gap_is_kept_as_a_gap(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "stdout")
    stream.put(0, b"before")
    assert stream.put(100, b"after") == 105
    assert files(tmp_path) == "stdout.0.log 6\nstdout.100.log 5"
    assert stream.span(0, 105) == b"before"
    assert stream.next_segment(6) == 100
    assert stream.span(100, 105) == b"after"


def test_a_spool_forgets_what_has_arrived_in_whole_segments(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "stdout")
    for _ in range(3):
        stream.put(stream.end, b"x" * 70)
    stream.forget_before(139)
    assert stream.start == 70
    stream.forget_before(209)
    assert (stream.start, stream.end) == (140, 210)
    stream.forget_before(210)
    assert (stream.start, stream.end, files(tmp_path)) == (210, 210, "stdout.210.log 0")
    stream.put(210, b"more")
    assert everything(stream) == b"more"


def test_a_spool_can_begin_anew_where_the_copy_ends(tmp_path: Path) -> None:
    stream = Stream(tmp_path, "stdout")
    stream.put(0, b"old")
    stream.restart_at(1_000)
    assert (stream.start, stream.end) == (1_000, 1_000)
    stream.put(1_000, b"new")
    assert everything(stream) == b"new"


def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "none", "stdout")
    assert (stream.start, stream.end, stream.read(0, 5), stream.next_segment(0)) == (0, 0, b"", None)
    assert not (tmp_path / "none").exists()


def test_streams_of_one_folder_do_not_mix(tmp_path: Path) -> None:
    Stream(tmp_path, "stdout").put(0, b"out")
    Stream(tmp_path, "stderr").put(0, b"error")
    assert everything(Stream(tmp_path, "stdout")) == b"out"


def test_a_spool_is_written_sent_and_forgotten_at_once_without_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_SEGMENTS", 10_000)
    spool, copy = Stream(tmp_path / "spool", "stdout"), Stream(tmp_path / "copy", "stdout")
    data = [bytes([number % 251]) * 23 for number in range(1_500)]
    received = bytearray()

    def pump() -> None:
        for piece in data:
            spool.put(spool.end, piece)

    writer = threading.Thread(target=pump)
    writer.start()
    while writer.is_alive() or copy.end < spool.end:
        fresh = spool.span(copy.end, spool.end)
        copy.put(copy.end, fresh)
        received += fresh
        spool.forget_before(copy.end)
    writer.join()
    assert bytes(received) == b"".join(data)
