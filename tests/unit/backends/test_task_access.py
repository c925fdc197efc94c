"""What a restart by request does to a training, in words."""

from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.simulation import World
from tfdeploy.backends.task_access import lost_in_memory, to_restart
from tfdeploy.errors import BackendError

BREAKS = (
    "The changes since the last checkpoint of the variables in its memory are lost: "
    "the sessions of the other tasks fail, and resume from that checkpoint."
)
ALONE = "The changes since the last checkpoint are lost: it resumes from that checkpoint."


@pytest.mark.parametrize(
    ("asked", "hostname", "says"),
    [
        ({"ps": 1, "workers": 1}, "ps-0", [BREAKS]),
        ({"ps": 1, "workers": 1}, "worker-0", []),
        ({"workers": 1, "tensorboard": True}, "worker-0", [ALONE]),
        ({"workers": 1, "tensorboard": True}, "tensorboard-0", []),
        ({"chief": 1, "workers": 0}, "chief-0", [ALONE]),
        ({"chief": 1, "workers": 1}, "worker-0", []),
        ({"workers": 2}, "worker-1", []),
    ],
)
def test_what_is_in_memory_alone_is_said_to_be_lost(asked: dict[str, Any], hostname: str, says: list[str]) -> None:
    made = World(**asked)
    made.come()
    assert lost_in_memory(made.job, hostname) == says
    assert lost_in_memory(None, hostname) == []
    made.exit(hostname)
    assert lost_in_memory(made.job, hostname) == [], "after the task's end"


def test_a_worker_of_an_elastic_run_that_has_failed_may_be_restarted() -> None:
    made = World(ps=1, workers=2, elastic={"max": 2}, restart={"maximum": 0})
    made.come()
    made.exit("worker-1", 1)
    assert to_restart(made.job, cluster_ref("local"), "worker-1").hostname == "worker-1"
    made.exit("worker-0")
    with pytest.raises(BackendError, match="has ended"):
        to_restart(made.job, cluster_ref("local"), "worker-1")
