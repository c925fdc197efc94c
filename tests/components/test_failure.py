"""Tasks that end badly: exit code, signal, out of memory and a missing program are told apart; restarts are counted."""

import socket

from tests.components.conftest import WAITS, Standing
from tfdeploy.agent.model import events

COUNTS_AND_FAILS = """
import sys
from steps import begin, number

print("start", number, flush=True)
begin()
sys.exit(7)
"""

FORKS_AN_EATER = """
import os, time
from steps import begin

begin()
eaten = []
if os.fork() == 0:
    while True:
        eaten.append(bytearray(8 * 1024 * 1024))
time.sleep(600)
"""


def test_a_task_is_started_once_more_than_it_may_be_restarted(cluster: Standing) -> None:
    restart = {"maximum": 3, "backoff": 0.1, "on": ["any"]}
    cluster.up(COUNTS_AND_FAILS, workers=1, restart=restart)
    assert cluster.until_state("failed").reason == "worker-0 failed (exit 7)"
    assert len(cluster.started("worker-0")) == 4
    assert cluster.output("worker-0") == b"start 1\nstart 2\nstart 3\nstart 4\n"
    kinds = (events.TASK_RESTARTING, events.TASK_FAILED)
    ends = [event for event in cluster.events() if event.kind in kinds]
    exits = [event.exit for event in ends if event.exit]
    assert [(end.code, end.signal, end.out_of_memory, end.attempt) for end in exits] == [
        (7, "", False, attempt) for attempt in (1, 2, 3, 4)
    ]
    assert [(event.kind, event.task, event.delay, event.failures) for event in ends] == [
        (events.TASK_RESTARTING, "worker-0", 0.0, 1),
        (events.TASK_RESTARTING, "worker-0", 0.1, 2),
        (events.TASK_RESTARTING, "worker-0", 0.2, 3),
        (events.TASK_FAILED, "worker-0", 0.0, 0),
    ]


def test_a_task_over_its_memory_limit_is_told_from_a_killed_one(cluster: Standing) -> None:
    cluster.up(FORKS_AN_EATER, workers=1, jobs={"worker": {"memory": "150MiB"}})
    seen = cluster.until_state("failed")
    assert seen.reason == "worker-0 ran out of memory"
    assert seen.tasks[0]["status"] == "out of memory"
    assert len(cluster.started("worker-0")) == 1


def test_a_program_that_is_not_there_says_so_in_the_log(cluster: Standing) -> None:
    cluster.up(command=["no-such-program", "--steps=1"], workers=1)
    seen = cluster.until_state("failed")
    assert seen.reason == "worker-0 failed (exit 127)"
    assert seen.logs["worker-0"] == ["tfdeploy: cannot start 'no-such-program': No such file or directory"]


def test_a_port_that_another_program_took_is_named_in_the_log(cluster: Standing) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        cluster.up(WAITS, workers=1, jobs={"worker": {"port": port}})
        seen = cluster.until_state("failed")
    assert seen.reason == "worker-0 failed (exit 1)"
    assert seen.logs["worker-0"] == [f"tfdeploy: port {port} of 127.0.0.1 is in use by another program"]
    assert not cluster.started("worker-0")
