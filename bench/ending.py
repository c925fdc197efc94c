"""Signals and deadlines that end a benchmark: what it made is removed first, and a further signal does not interrupt that."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    """The first signal that was received, and whether it may raise an exception now."""

    received = 0
    raised = False
    held = 0
    late: Exception | None = None
    """What is raised because a deadline has passed."""


def watch() -> None:
    """From now on the first of these signals raises SystemExit in the main thread; later ones do nothing."""
    for number in _SIGNALS:
        signal.signal(number, _end)


@contextmanager
def undisturbed() -> Iterator[None]:
    """While inside, signals and deadlines wait: for what removes processes and containers, or continues them."""
    _State.held += 1
    try:
        yield
    finally:
        _State.held -= 1
        _raise()


@contextmanager
def deadline(seconds: float, error: Exception) -> Iterator[None]:
    """Raise `error` in the main thread, once so many seconds have passed inside."""

    def expire(*_: object) -> None:
        _State.late = error
        _raise()

    before = signal.signal(signal.SIGALRM, expire)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _State.late = None
        signal.signal(signal.SIGALRM, before)


def _end(number: int, _: object) -> None:
    _State.received = _State.received or number
    _raise()


def _raise() -> None:
    if _State.held:
        return
    if _State.received and not _State.raised:
        _State.raised = True
        raise SystemExit(128 + _State.received)
    if _State.late and not _State.received:
        error, _State.late = _State.late, None
        raise error
