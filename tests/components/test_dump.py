"""What `tfdeploy dump` prints of real tasks, of which one reads a file that has no end, and another is stopped."""

import json
import os
import signal
from pathlib import Path

from tests.components.conftest import Standing
from tests.components.registered import verbs_of
from tests.waiting import until

PLANTED = """
import faulthandler, os, signal
from steps import begin, hostname

faulthandler.register(signal.SIGUSR2, open(os.environ["TFDEPLOY_STACKS"], "w"))


def load():
    os.read(os.open("part-3", os.O_RDWR), 1)


print("step 100", flush=True)
if hostname == "worker-0":
    begin()
    while True:
        sum(range(10000))
os.mkfifo("part-3")
begin()
load()
"""


def test_a_task_that_hangs_and_one_that_is_stopped_are_seen_and_continue(cluster: Standing) -> None:
    cluster.run(PLANTED, workers=3)
    verbs, stopped = verbs_of(cluster), cluster.started("worker-2")[0]
    reading = "worker-1:\n  MainThread\n    program.py:9 in load\n    program.py:19 in <module>"

    def reads() -> bool:
        return reading in verbs.call("dump", "worker-1")[1].decode()

    until(reads, "worker-1 reads")
    code, said, beside = verbs.call("dump", "worker-1")
    assert (code, beside) == (0, "")
    assert said.split()[:6] == b"HOSTNAME STATUS STEP SPEED CPUS MEMORY".split()
    assert b"worker-0" not in said

    os.kill(stopped, signal.SIGSTOP)
    until(lambda: state_of(stopped) == "T", "worker-2 is stopped")
    code, said, _ = verbs.call("dump", "--json")
    tasks = json.loads(said)["tasks"]
    assert code == 0
    assert [(task["hostname"], task["status"]) for task in tasks] == [(f"worker-{n}", "running") for n in range(3)]
    assert [task["progress"]["step"] for task in tasks] == [100.0] * 3
    assert tasks[2]["dump"]["notes"] == ["no Python stack: the process is stopped"]
    assert tasks[0]["dump"]["cpus"] > tasks[1]["dump"]["cpus"] + 0.05
    assert min(task["dump"]["memory"] for task in tasks) > 1 << 20

    os.kill(stopped, signal.SIGCONT)
    until(lambda: state_of(stopped) == "S", "worker-2 continues")
    assert [len(cluster.started(f"worker-{index}")) for index in range(3)] == [1, 1, 1]


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
