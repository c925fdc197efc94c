"""Signals that end a benchmark: what it made is removed first, and a further signal does not interrupt that."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    """The first signal that was received, and whether it may raise an exception now."""

    received = 0
    raised = False
    held = 0


def watch() -> None:
    """From now on the first of these signals raises SystemExit in the main thread; later ones do nothing."""
    for number in _SIGNALS:
        signal.signal(number, _end)


@contextmanager
def undisturbed() -> Iterator[None]:
    """While inside, a signal waits: for what removes processes and containers, or continues them."""
    _State.held += 1
    try:
        yield
    finally:
        _State.held -= 1
        _raise()


def _end(number: int, _: object) -> None:
    _State.received = _State.received or number
    _raise()


def _raise() -> None:
    if _State.received and not _State.raised and not _State.held:
        _State.raised = True
        raise SystemExit(128 + _State.received)
