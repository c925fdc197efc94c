"""The use of processors and memory, from what an engine reports."""

from typing import Any

import pytest
from docker.errors import NotFound

from tfdeploy.backends.docker.task_access import measure, usage_of
from tfdeploy.errors import BackendError

STATS: dict[str, Any] = {
    "cpu_stats": {"cpu_usage": {"total_usage": 4_000}, "system_cpu_usage": 10_000, "online_cpus": 4},
    "precpu_stats": {"cpu_usage": {"total_usage": 1_000}, "system_cpu_usage": 2_000},
    "memory_stats": {"usage": 5_000, "stats": {"inactive_file": 1_000}},
}


def test_processors_and_memory_are_those_of_docker_stats() -> None:
    usage = usage_of(STATS)
    assert usage is not None
    assert (usage.cpus, usage.memory) == (1.5, 4_000)
    begun = usage_of({**STATS, "precpu_stats": {"cpu_usage": {"total_usage": 0}}, "cpu_stats": STATS["precpu_stats"]})
    assert begun is not None
    assert begun.cpus >= 0, "nothing is divided by nothing"
    assert usage_of({**STATS, "memory_stats": {}}) is None


@pytest.mark.parametrize("error", [BackendError("out of reach"), NotFound("no such container")])
def test_a_machine_out_of_reach_and_a_container_that_has_ended_leave_their_tasks_out(error: Exception) -> None:
    class Measuring:
        def call(self, _: Any) -> dict[str, Any]:
            return STATS

    def engine_of(hostname: str) -> Any:
        if hostname == "worker-1":
            raise error
        return Measuring()

    assert list(measure({"worker-0": "a", "worker-1": "b"}, engine_of)) == ["worker-0"]
