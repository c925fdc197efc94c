"""Tasks as processes of this machine."""

from functools import cache
from importlib.util import find_spec

from ..backend import Backend, lazy
from ..base import Discovery

for _package in ("psutil", "supervisor"):  # imported where they are used, because that takes long
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)

BACKEND = Backend(
    lazy(f"{__package__}.planner", "LocalPlanner"),
    cache(lazy(f"{__package__}.task_runner", "LocalTaskRunner")),
    lazy(f"{__package__}.task_access", "LocalAccess"),
    Discovery(lazy(f"{__package__}.discover", "discover_clusters"), lazy(f"{__package__}.discover", "health")),
    restore_command="pulumi up --refresh",
)
