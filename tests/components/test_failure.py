"""Tasks that end badly: exit code, signal, out of memory and a missing program are told apart; restarts are counted."""

import os
import signal
import socket

import pytest

from tests.components.conftest import WAITS, Standing
from tfdeploy.agent.model import events

COUNTS_AND_FAILS = """
import os, signal, sys
from steps import begin, number

print("start", number, flush=True)
begin()
if os.environ["HOW"] == "signal":
    os.kill(os.getpid(), signal.SIGSEGV)
sys.exit(int(os.environ["HOW"]))
"""

EATS = """
from steps import begin

begin()
eaten = []
while True:
    eaten.append(bytearray(8 * 1024 * 1024))
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


def test_a_failed_worker_fails_the_job_with_its_exit_code(cluster: Standing) -> None:
    script = "import sys, os\nprint('last words')\nsys.exit(3 * int(os.environ['TFDEPLOY_TASK_INDEX']))"
    cluster.up(script, workers=2, success="all-workers")
    seen = cluster.until_state("failed")
    assert seen.reason == "worker-1 failed (exit 3)"
    assert seen.tasks[1]["status"] == "failed (exit 3)"
    assert seen.tasks[1]["exit_code"] == 3
    assert seen.logs["worker-1"] == ["last words"]


def test_the_others_are_stopped_when_one_has_failed(cluster: Standing) -> None:
    cluster.up(WAITS, ps=1, workers=2)
    os.kill(cluster.until_started("worker-1"), signal.SIGUSR1)
    cluster.until_status("worker-1", "restarting")
    cluster.up(WAITS, ps=1, workers=2, restart={"maximum": 0}, run_id="without restart")
    os.kill(cluster.until_started("worker-1", 2), signal.SIGUSR1)
    seen = cluster.until_state("failed")
    assert seen.reason == "worker-1 was killed (SIGUSR1)"
    assert [row["status"] for row in seen.tasks] == [
        "stopped (run failed)",
        "stopped (run failed)",
        "killed (SIGUSR1)",
    ]


def test_a_task_is_started_once_more_than_it_may_be_restarted(cluster: Standing) -> None:
    restart = {"maximum": 2, "backoff": 0.1, "on": ["any"]}
    cluster.up(COUNTS_AND_FAILS, workers=1, restart=restart, env={"HOW": "7"})
    assert cluster.until_state("failed").reason == "worker-0 failed (exit 7)"
    assert len(cluster.started("worker-0")) == 3
    assert cluster.output("worker-0") == b"start 1\nstart 2\nstart 3\n"
    kinds = (events.TASK_RESTARTING, events.TASK_FAILED)
    ends = [event for event in cluster.events() if event.kind in kinds]
    exits = [event.exit for event in ends if event.exit]
    assert [(end.code, end.signal, end.out_of_memory, end.attempt) for end in exits] == [
        (7, "", False, attempt) for attempt in (1, 2, 3)
    ]
    assert [(event.kind, event.task, event.delay, event.failures) for event in ends] == [
        (events.TASK_RESTARTING, "worker-0", 0.1, 1),
        (events.TASK_RESTARTING, "worker-0", 0.2, 2),
        (events.TASK_FAILED, "worker-0", 0.0, 0),
    ]


@pytest.mark.parametrize(
    ("how", "on", "starts", "reason"),
    [
        ("7", ["5-7", "9"], 2, "worker-0 failed (exit 7)"),
        ("signal", ["signal"], 2, "worker-0 was killed (SIGSEGV)"),
        ("139", ["signal"], 1, "worker-0 failed (exit 139)"),
    ],
)
def test_only_the_ends_that_the_policy_names_are_restarted(
    cluster: Standing, how: str, on: list[str], starts: int, reason: str
) -> None:
    cluster.up(COUNTS_AND_FAILS, workers=1, restart={"maximum": 1, "backoff": 0.1, "on": on}, env={"HOW": how})
    assert cluster.until_state("failed").reason == reason
    assert len(cluster.started("worker-0")) == starts


def test_a_killed_child_is_restarted_with_backoff(cluster: Standing) -> None:
    cluster.up(WAITS, workers=1, restart={"backoff": "2s"})
    first = cluster.until_started("worker-0")
    os.kill(first, signal.SIGKILL)
    cluster.until_running("worker-0", times=2)
    (restart,) = [event for event in cluster.events() if event.kind == events.TASK_RESTARTING]
    assert (restart.task, restart.delay, restart.failures, restart.max_failures) == ("worker-0", 2.0, 1, 3)


@pytest.mark.parametrize("script", [EATS, FORKS_AN_EATER])
def test_a_task_over_its_memory_limit_is_told_from_a_killed_one(cluster: Standing, script: str) -> None:
    cluster.up(script, workers=1, jobs={"worker": {"memory": "150MiB"}})
    seen = cluster.until_state("failed")
    assert seen.reason == "worker-0 ran out of memory"
    assert seen.tasks[0]["status"] == "out of memory"
    assert len(cluster.started("worker-0")) == 1


def test_out_of_memory_is_restarted_when_the_policy_says_so(cluster: Standing) -> None:
    restart = {"maximum": 1, "backoff": 0, "on": ["oom"]}
    cluster.up(EATS, workers=1, jobs={"worker": {"memory": "150MiB", "restart": restart}})
    cluster.until_state("failed")
    assert len(cluster.started("worker-0")) == 2


def test_a_program_that_is_not_there_says_so_in_the_log(cluster: Standing) -> None:
    cluster.up(command=["no-such-program", "--steps=1"], workers=1)
    seen = cluster.until_state("failed")
    assert seen.reason == "worker-0 failed (exit 127)"
    assert seen.logs["worker-0"] == ["tfdeploy: cannot start 'no-such-program': No such file or directory"]


def test_a_program_that_may_not_be_run_says_so_in_the_log(cluster: Standing) -> None:
    cluster.up("print(1)", command=["./program.py"], workers=1)
    seen = cluster.until_state("failed")
    assert seen.logs["worker-0"] == ["tfdeploy: cannot start './program.py': Permission denied"]


def test_a_folder_that_the_program_removed_is_said_in_the_log(cluster: Standing) -> None:
    script = "import os, shutil, sys\nshutil.rmtree(os.getcwd())\nsys.exit(1)"
    cluster.up(script, workers=1, restart={"maximum": 1, "backoff": 0, "on": ["any"]})
    seen = cluster.until_state("failed")
    assert seen.reason == "worker-0 failed (exit 127)"
    assert "tfdeploy: cannot start" in seen.logs["worker-0"][-1]


def test_a_port_that_another_program_took_is_named_in_the_log(cluster: Standing) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        cluster.up(WAITS, workers=1, jobs={"worker": {"port": port}})
        seen = cluster.until_state("failed")
    assert seen.reason == "worker-0 failed (exit 1)"
    assert seen.logs["worker-0"] == [f"tfdeploy: port {port} of 127.0.0.1 is in use by another program"]
    assert not cluster.started("worker-0")


def test_a_taken_port_is_tried_again_where_the_policy_says_so(cluster: Standing) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        restart = {"maximum": 100, "backoff": 0.5, "on": ["1"]}
        cluster.up(WAITS, workers=1, jobs={"worker": {"port": port}}, restart=restart)
        cluster.until_status("worker-0", "restarting")
    cluster.until_started("worker-0")
    assert cluster.look().endpoints == {"worker-0": f"127.0.0.1:{port}"}
