"""TFMesos' fine-grained mode: tasks that only serve, and one client that drives them all, from wherever it is."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.programs.program import Program
from tests.waiting import until

pytestmark = pytest.mark.full

CLIENT = """\
import sys, time
import ingraph

def client(targets):
    print(*sorted(targets), flush=True)
    {does}

if __name__ == "__main__":
    sys.exit(ingraph.main(client, ps=1, workers=1))
"""
"""A client of a user's own."""


@pytest.fixture
def program(programs: Callable[[str], Program]) -> Program:
    """The program in a copy."""
    return programs("tfmesos_plus")


def start(program: Program, *command: str) -> "subprocess.Popen[str]":
    """Start a client, as in a terminal of its own."""
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=program.program,
        env=program.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Its exit code, what it has printed (all that was not read yet), and said beside that."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def assert_taken_away(program: Program, clusters: int) -> None:
    """Nothing is left of clusters that were made for a client alone."""
    entries = program.registered()
    assert len(entries) == clusters
    assert all(entry["ended"] > 0 for entry in entries)
    program.assert_nothing_left()
    stacks = json.loads(program.call("stack", "ls", "--json").output)
    assert [stack["name"] for stack in stacks] == ["test"]
    assert list(program.program.glob("Pulumi.*-*.yaml")) == []


def test_clients_by_hand_add_and_train_on_servers_that_stand(program: Program) -> None:
    program.set("client", "none")
    program.up()
    at = json.dumps(program.outputs()["endpoints"])
    code, out, err = ended(start(program, "plus.py", "--at", at))
    assert (code, out) == (0, "42\n"), err
    said = program.tfdeploy("logs", "worker-0", "--stderr")
    for node, job, task in (("ten", "ps", 0), ("more", "ps", 1), ("add", "worker", 1)):
        placed = rf" {node}: \(\w+\): /job:{job}/replica:0/task:{task}/"
        assert re.search(placed, said), said

    program.env["STEPS"] = "200"
    code, out, err = ended(start(program, "mnist.py", "--at", at))
    assert code == 0, err
    *steps, accuracy = out.splitlines()
    counts = {name: int(count) for name, _, count, _ in map(str.split, steps)}
    assert counts.keys() == {"worker-0", "worker-1"}
    assert min(counts.values()) > 10, "a thread for each worker"
    assert float(accuracy.removeprefix("accuracy: ")) > 0.8
    program.destroy()


def test_a_client_alone_brings_its_cluster_and_takes_it_away(program: Program) -> None:
    code, out, err = ended(start(program, "plus.py"))
    assert (code, out) == (0, "42\n"), err
    assert_taken_away(program, 1)


def test_a_client_that_fails_and_one_that_is_stopped_leave_nothing(program: Program) -> None:
    for name, does in (("fails", "sys.exit(7)"), ("waits", "time.sleep(600)")):
        (program.program / f"{name}.py").write_text(CLIENT.format(does=does))
    fails, waits = start(program, "fails.py"), start(program, "waits.py")
    assert waits.stdout is not None
    assert waits.stdout.readline() == "ps-0 worker-0\n"
    os.killpg(waits.pid, signal.SIGINT)
    assert ended(waits)[0] == 130
    code, out, err = ended(fails)
    assert (code, out) == (7, "ps-0 worker-0\n"), err
    assert_taken_away(program, 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_cluster_is_made_leaves_nothing(program: Program, number: signal.Signals) -> None:
    process = start(program, "plus.py", "-s", "1", "-w", "1")
    clusters = program.folder / "state/tfdeploy/clusters"
    until(lambda: list(clusters.glob("*")), "the cluster is being made", 240)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    code, out, err = ended(process)
    assert (code, out) == (128 + number, ""), err
    assert_taken_away(program, 1)


def test_what_is_refused_is_told_and_leaves_nothing(program: Program) -> None:
    code, out, err = ended(start(program, "plus.py", "--set", "stop_grace_period=soon"))
    assert (code, out) == (1, "")
    assert "stop_grace_period: 'soon' is not a valid duration" in err
    assert_taken_away(program, 0)
