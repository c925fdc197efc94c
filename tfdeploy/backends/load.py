"""The backend of a name, and its parts. Its module is imported when it is needed."""

import importlib
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress

from ..errors import SpecError
from ..spec.backends import backend_entry, install_advice, refuse_platform
from .backend import Backend
from .base import Check, DiscoveredCluster, TaskAccess

_import_lock = threading.RLock()
"""Where a package is missing, two threads that import the same modules get half of a module, and another error."""


def load(name: str) -> Backend:
    """The backend of that name.

    Raises:
        SpecError: the name is not in the table, the backend needs Linux, or packages that it needs are not installed.
    """
    entry = backend_entry(name)
    refuse_platform(name, sys.platform)
    try:
        with _import_lock:
            backend: Backend = importlib.import_module(entry.module).BACKEND
    except ModuleNotFoundError as error:
        wrong = f"{name!r} needs the package {error.name}, which is not installed"
        raise SpecError("backend", wrong, f"Install what it needs: {install_advice(name)}.") from None
    return backend


def access(name: str) -> TaskAccess:
    """How a user reaches the tasks of a backend; raises what `load` raises."""
    return load(name).access


def search(name: str, place: str = "") -> Sequence[DiscoveredCluster]:
    """All clusters of a backend at a place; raises what `load` and `Discovery.discover` raise."""
    return load(name).discovery.discover(place)


def health(name: str, place: str = "") -> Sequence[Check]:
    """Whether a backend has what it needs; raises what `load` raises."""
    return load(name).discovery.health(place)


def preload(names: Iterable[str]) -> None:
    """Import the modules of backends. The time limit of the calls that follow is then for the backends' responses, and not for imports.

    A backend that cannot be loaded is left out: its own call raises the error.
    """
    for name in names:
        with suppress(SpecError):
            load(name)
