"""Signals and deadlines that end a benchmark: what it made is removed first, and a further signal does not interrupt that."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    """What is to be raised, and how many `undisturbed` are open."""

    pending: BaseException | None = None
    held = 0


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
    before = signal.signal(signal.SIGALRM, lambda *_: _raise(error))
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if _State.pending is error:
            _State.pending = None


def _end(number: int, _: object) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    for each in _SIGNALS:
        signal.signal(each, lambda *_: None)
    _raise(SystemExit(128 + number))


def _raise(error: BaseException | None = None) -> None:
    """Raise this or what waits, unless that is held."""
    _State.pending = error or _State.pending
    if _State.pending is not None and not _State.held:
        error, _State.pending = _State.pending, None
        raise error
