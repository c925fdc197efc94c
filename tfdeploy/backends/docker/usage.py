"""What containers use, as `docker stats` computes it: https://docs.docker.com/reference/api/engine/version/v1.47/#tag/Container."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from docker.errors import APIError

from ...errors import BackendError
from ..base import TaskUsage
from .engine.engine import Engine

_PARALLEL_CALLS = 16
"""An engine measures each container for a second, several at once."""


def usage_of(stats: Mapping[str, Any]) -> TaskUsage | None:
    """The use of one container; None if it does not run."""
    now, before, memory = stats["cpu_stats"], stats["precpu_stats"], stats["memory_stats"]
    if not memory.get("usage"):
        return None
    used = now["cpu_usage"]["total_usage"] - before["cpu_usage"]["total_usage"]
    passed = now.get("system_cpu_usage", 0) - before.get("system_cpu_usage", 0)
    cpus = used / passed * (now.get("online_cpus") or 1) if passed > 0 else 0.0
    details = memory.get("stats", {})
    cache = details.get("inactive_file", details.get("total_inactive_file", 0))
    return TaskUsage(max(0.0, cpus), max(0, memory["usage"] - cache))


def measure(containers: Mapping[str, str], engine_of: Callable[[str], Engine]) -> Mapping[str, TaskUsage]:
    """The use of these containers, by hostname; without those that have ended or that this computer does not reach."""

    def one(item: tuple[str, str]) -> tuple[str, TaskUsage | None]:
        hostname, container = item
        try:
            stats = engine_of(hostname).call(lambda api: api.stats(container, stream=False))
        except (BackendError, APIError):  # it may have ended since it was listed
            return hostname, None
        return hostname, usage_of(stats)

    with ThreadPoolExecutor(_PARALLEL_CALLS) as executor:
        results: Iterable[tuple[str, TaskUsage | None]] = executor.map(one, containers.items())
        return {hostname: usage for hostname, usage in results if usage is not None}
