"""The recipes of docs/how-to/existing-programs.md for older programs: what they read, and who evaluates."""

import json
import sys

from tests.components.conftest import Standing
from tests.waiting import until

MASTER = """
import json, os
from steps import begin, wait_for

config = json.loads(os.environ["TF_CONFIG"])
print(json.dumps({"cluster": config["cluster"], "task": config["task"]}), flush=True)
begin()
wait_for("never" if config["task"]["type"] == "ps" else "gate")
"""

EVALUATES = """
import argparse, json
from steps import begin, hostname, wait_for

parser = argparse.ArgumentParser()
for name in ("ps_list", "worker_list", "type", "id"):
    parser.add_argument("--" + name, required=True)
flags = parser.parse_args()
workers, kind, index = flags.worker_list.split(","), flags.type, int(flags.id)
cluster = {"chief": workers[:1], "ps": flags.ps_list.split(","), "worker": workers[2:]}
if kind == "worker":
    kind, index = [("chief", 0), ("evaluator", 0), ("worker", 0)][index]
print(json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}}), flush=True)
begin()
wait_for(hostname)
if kind == "evaluator":
    print("accuracy: 0.9", flush=True)
"""
"""Worker 0 takes itself for the chief, and worker 1 for the evaluator."""


def told(cluster: Standing, hostname: str) -> dict[str, object]:
    """The first line that a task has printed."""

    def line() -> bytes:
        first, end, _ = cluster.output(hostname).partition(b"\n")
        return first if end else b""

    told: dict[str, object] = json.loads(until(line, f"the first line of {hostname}"))
    return told


def test_a_program_that_calls_the_chief_master_finds_it(cluster: Standing) -> None:
    cluster.run(MASTER, chief=True, tf_config_master=True, ps=1, workers=1, evaluator=True)
    cluster.finish()
    book = cluster.job().address_book
    addresses = {"master": [book["chief-0"]], "ps": [book["ps-0"]], "worker": [book["worker-0"]]}
    for hostname, kind in (("chief-0", "master"), ("ps-0", "ps"), ("worker-0", "worker"), ("evaluator-0", "evaluator")):
        assert told(cluster, hostname) == {"cluster": addresses, "task": {"type": kind, "index": 0}}


def test_a_worker_that_makes_itself_the_evaluator_has_its_time_after_the_success(cluster: Standing) -> None:
    flags = ["--ps_list={ps_hosts}", "--worker_list={worker_hosts}", "--type={job_name}", "--id={task_index}"]
    cluster.up(
        EVALUATES,
        command=[sys.executable, "program.py", *flags],
        ps=1,
        workers=3,
        worker_timeout="10m",
        metrics={"accuracy": r"accuracy: (\S+)"},
    )
    cluster.until_running("ps-0", "worker-0", "worker-1", "worker-2")
    book = cluster.job().address_book
    addresses = {"chief": [book["worker-0"]], "ps": [book["ps-0"]], "worker": [book["worker-2"]]}
    assert told(cluster, "worker-1") == {"cluster": addresses, "task": {"type": "evaluator", "index": 0}}
    cluster.open("worker-0")
    cluster.open("worker-2")
    until(lambda: cluster.look().decided, "the run has succeeded")
    assert cluster.status("worker-1") == "running"
    cluster.open("worker-1")
    seen = cluster.until_state("succeeded")
    assert seen.metrics == {"accuracy": 0.9}
    assert {row["hostname"]: row["status"] for row in seen.tasks} == {
        "ps-0": "stopped (run finished)",
        **{f"worker-{index}": "succeeded" for index in range(3)},
    }
