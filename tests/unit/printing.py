"""Logs as a launcher writes them, for the tests of what is read back."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

from tfdeploy.agent.record.log_lines import PIPES, STDERR, STDOUT, Line, Log, Reader, entry

Chunk = tuple[int, bytes]

CHUNKS: st.SearchStrategy[list[Chunk]] = st.lists(
    st.tuples(
        st.sampled_from([STDOUT, STDERR]),
        st.one_of(
            st.binary(min_size=1, max_size=40),
            st.lists(st.sampled_from([b"\n", b"\r", b"a", b"\xff", b"bc\n", b"acc: 1", b"\r\n"]), min_size=1).map(
                b"".join
            ),
        ),
    ),
    max_size=16,
)
"""What a program prints, as the launcher reads it from the two pipes."""


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder; property tests need one for each example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def write(log: Log, chunks: Sequence[Chunk], attempt: int = 1, begin: float = 0.0) -> None:
    """Keep chunks, one a second from `begin` on, as the launcher's pump does."""
    for second, (pipe, data) in enumerate(chunks):
        stream, index = log.streams[PIPES[pipe]], log.streams["index"]
        place = stream.end
        stream.put(place, data)
        index.put(index.end, entry(begin + second, pipe, attempt, place, len(data)))


def printed(chunks: Sequence[Chunk], pipe: int) -> bytes:
    """All that went through one pipe."""
    return b"".join(data for which, data in chunks if which == pipe)


def all_lines(log: Log) -> list[Line]:
    """Every line by reading forward from the beginning, in the order of time."""
    reader = Reader(log)
    return sorted([*reader.more(), *reader.unfinished()], key=lambda line: line.at)


def seen(lines: Sequence[Line]) -> list[tuple[float, int, str]]:
    """What people see of lines."""
    return [(line.at, line.pipe, line.text) for line in lines]
