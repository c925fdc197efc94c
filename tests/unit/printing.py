"""Logs as a launcher writes them, for the tests of what is read back."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

from tfdeploy.agent.record.output import Log, Reader, Spool
from tfdeploy.agent.record.output_lines import STDERR, STDOUT, Encoder, Line
from tfdeploy.agent.record.progress import Progress, Training
from tfdeploy.agent.record.reading import reading

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
    """Keep chunks, one a second from `begin` on, as the launcher's pump does when each is the only one for long."""
    spool = Spool(log.folder, {})
    for second, (pipe, data) in enumerate(chunks):
        encoder = Encoder(pipe, attempt)
        spool.write(encoder.add(data, begin + second) + encoder.rest())


def progressed(*lines: tuple[float, str], attempt: int = 1, training: Training | None = None) -> Progress:
    """What a search finds in these lines, with their times."""
    training = training or Training()
    for at, text in lines:
        training.add(attempt, at, reading(text))
    return training.progress


def printed(chunks: Sequence[Chunk], pipe: int) -> bytes:
    """All that went through one pipe."""
    return b"".join(data for which, data in chunks if which == pipe)


def all_lines(log: Log) -> list[Line]:
    """Every line by reading forward from the beginning."""
    reader = Reader(log)
    return [*reader.more(), *reader.unfinished()]


def seen(lines: Sequence[Line]) -> list[tuple[float, int, str]]:
    return [(line.at, line.pipe, line.text) for line in lines]
