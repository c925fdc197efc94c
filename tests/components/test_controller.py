"""The controller goes away and comes back: the training goes on, nothing is lost, nothing is told that is not known."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psutil
import pytest

from tests.components.conftest import TOKEN, WAITS, Standing
from tests.components.processes import halted
from tests.waiting import until
from tfdeploy.agent.model.events import (
    BARRIER_PASSED,
    LAUNCHER_REGISTERED,
    TASK_RESTARTING,
    TASK_STARTED,
    TASK_SUCCEEDED,
)
from tfdeploy.agent.record.output_lines import STDERR, Part, encode
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.wire.rpc import UNIX, Client

PRINTS_UNTIL_TOLD = """
from steps import begin, here

begin()
number = 0
while not (here / "gate").exists():
    for _ in range(100):
        print(number, "x" * (number % 97))
        number += 1
(here / "printed").write_text(str(number))
"""

PRINTS_AND_WAITS = """
from steps import begin, wait_for

start = begin()
for number in range(1000):
    print(start, number)
print(end="", flush=True)
wait_for("gate")
print("the end")
"""


def lines_of(start: int) -> bytes:
    """What `PRINTS_AND_WAITS` prints after this start."""
    return b"".join(b"%d %d\n" % (start, number) for number in range(1000))


def printed(cluster: Standing) -> bytes:
    """All that `PRINTS_UNTIL_TOLD` says it has printed."""
    count = int((cluster.folder / "printed").read_text())
    return b"".join(b"%d %s\n" % (number, b"x" * (number % 97)) for number in range(count))


def until_more(cluster: Standing) -> None:
    """Wait until more of the output is in the record than now."""
    known = len(cluster.output("worker-0"))
    until(lambda: len(cluster.output("worker-0")) > known, "more output")


def test_no_byte_is_lost_when_the_controller_is_killed_again_and_again(cluster: Standing) -> None:
    cluster.run(PRINTS_UNTIL_TOLD, workers=1)
    for _ in range(2):
        cluster.kill("controller")
        until_more(cluster)
    cluster.finish()
    assert cluster.output("worker-0") == printed(cluster)
    assert cluster.look().logs["worker-0"] == printed(cluster).decode().splitlines()[-20:]


def test_the_training_goes_on_while_the_controller_is_away_and_what_happened_is_made_up_for(cluster: Standing) -> None:
    """A program that was killed is started again, and ends. All of that is in the record once, with its own time."""
    cluster.up(PRINTS_AND_WAITS, workers=1)
    first = cluster.until_started("worker-0")
    cluster.until_running("worker-0")
    cluster.until_output("worker-0", lines_of(1))
    controller = cluster.pid("controller")
    with halted(controller):
        os.kill(first, signal.SIGKILL)
        second = cluster.until_started("worker-0", 2)
        cluster.open()
        until(lambda: not psutil.pid_exists(second), "the second program has ended, and its launcher has noticed")
        assert cluster.recorded("worker-0") == "running"
        returned = time.time()
    cluster.until_state("succeeded")
    assert cluster.output("worker-0") == lines_of(1) + lines_of(2) + b"the end\n"
    assert Record(cluster.places.record).log(cluster.job().spec.id, "worker-0").attempts() == [1, 2]
    happened = [event for event in cluster.events() if event.task]
    assert [(event.kind, event.attempt) for event in happened] == [
        (LAUNCHER_REGISTERED, 0),
        (TASK_STARTED, 1),
        (TASK_RESTARTING, 2),
        (TASK_STARTED, 2),
        (TASK_SUCCEEDED, 0),
    ]
    assert happened[3].at < returned
    assert (cluster.job().tasks["worker-0"].attempt, cluster.job().tasks["worker-0"].failures) == (2, 1)
    assert len(cluster.started("worker-0")) == 2
    assert cluster.pid("controller") == controller


def test_a_controller_killed_before_all_have_come_goes_on_waiting(cluster: Standing) -> None:
    cluster.declare(WAITS, workers=2)
    cluster.stand(without=("worker-1",))
    cluster.until_status("worker-0", "waiting for worker-1")
    cluster.kill("controller")
    cluster.until_status("worker-0", "waiting for worker-1")
    cluster.stand()
    cluster.until_started("worker-0")
    cluster.until_started("worker-1")
    assert (BARRIER_PASSED, "") in cluster.happened()


def test_a_cluster_whose_token_was_lost_is_adopted_with_another(
    cluster: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.run(WAITS, workers=1)
    monkeypatch.setattr("tests.components.conftest.TOKEN", "another token")
    cluster.stand()
    cluster.finish()
    assert len(cluster.started("worker-0")) == 1


def test_pieces_of_a_log_that_come_twice_at_once_are_kept_once(cluster: Standing) -> None:
    cluster.up(WAITS, workers=1)
    run = Record(cluster.places.record).current()
    assert run is not None
    pieces = [encode(Part(float(number), STDERR, 1, b"x" * 300_000, True)) for number in range(20)]
    together = Barrier(4)

    def send(_: int) -> None:
        with Client(f"{UNIX}{cluster.places.controller_socket}", TOKEN) as controller:
            for number, piece in enumerate(pieces):
                together.wait()
                path = f"/log/{run.spec.id}/worker-0/own/0/{number * len(piece)}/{'0' * 32}"
                controller.call("PUT", path, piece)

    with ThreadPoolExecutor(4) as senders:
        list(senders.map(send, range(4)))
    log = Record(cluster.places.record).log(run.spec.id, "worker-0")
    assert log.path(0).read_bytes() == b"".join(pieces)
