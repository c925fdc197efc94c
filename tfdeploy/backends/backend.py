"""One backend: where its contracts are made, what else the others need to know of it, and how it is loaded when it is needed."""

import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from ..errors import SpecError
from ..spec.backends import backend_entry, install_advice, refuse_platform
from .base import Check, ClusterRef, DiscoveredCluster, Discovery, MachineProvider, Planner, TaskAccess, TaskRunner

if TYPE_CHECKING:  # the command imports this module too, and needs no plan
    from ..plan.inventory import PlaceRef

_import_lock = threading.RLock()
"""Where a package is missing, two threads that import the same modules get half of a module, and another error."""


def lazy(module: str, name: str) -> Callable[..., Any]:
    """Calls a function or a class of a module, which is imported then."""

    def call(*args: object) -> Any:
        return resolve_name(f"{module}:{name}")(*args)

    return call


@dataclass(frozen=True)
class Backend:
    """One backend. Its contracts are made when they are needed, because each of them takes long to load."""

    make_planner: "Callable[[], Planner[Any]]"
    make_runner: Callable[[], TaskRunner]
    make_access: Callable[[], TaskAccess]
    discovery: Discovery
    restore_command: str
    """The command that creates tasks and machines that died again."""
    machine_provider: "MachineProvider | None" = None
    describe_other_place: "Callable[[ClusterRef, PlaceRef, PlaceRef], tuple[str, str] | None]" = lambda *_: None
    """What is wrong with another place at the address of the stored one, and what to do; None for what is so on every backend."""
    adoption_completed_by: frozenset[str] = frozenset()
    """The names of resources, without the prefix. Until the state has one of them, an update after an interrupted one still adopts.
    Empty: what an update creates is the cluster's from the beginning."""

    @property
    def planner(self) -> "Planner[Any]":
        """The planner, which keeps no state."""
        return self.make_planner()

    @property
    def runner(self) -> TaskRunner:
        """The task runner."""
        return self.make_runner()

    @property
    def access(self) -> TaskAccess:
        """How a user reaches a task."""
        return self.make_access()


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
