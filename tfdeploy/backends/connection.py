"""Connections to tasks, whatever they lead through."""

from collections.abc import Callable
from typing import Protocol


class Connection(Protocol):
    """One connection to a task."""

    def send(self, data: bytes) -> None:
        """Send bytes; OSError when the other side no longer reads."""

    def end(self) -> None:
        """Close this side's direction; the other direction stays open."""

    def receive(self) -> bytes:
        """The next bytes; none at the end."""

    def why(self) -> str:
        """Why there was no connection; known at the end, empty where there was one."""

    def close(self) -> None:
        """Close it in both directions."""


Connect = Callable[[], Connection]
"""Opens a new connection."""
