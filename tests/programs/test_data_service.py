"""programs/data_service trains while its data workers are killed, added and removed, and its dispatcher is killed."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.data_service import IN_ANSWERS, MOST_LOST, epochs_in
from tests.programs.program import Program
from tests.waiting import until

CLUSTER, ELEMENTS = "cluster", 1000


def epochs(program: Program) -> dict[int, tuple[int, int]]:
    """Number to elements and different elements of the epochs that have ended."""
    return epochs_in(program.log("worker-0", CLUSTER))


def begun_epoch(program: Program) -> int:
    """Wait until another epoch has begun; its number."""
    number = max(epochs(program), default=-1) + 1
    until(
        lambda: f"epoch {number} step 0\n" in program.log("worker-0", CLUSTER),
        f"epoch {number}",
        seen=partial(program.shown, CLUSTER),
    )
    return number


def ended_epoch(program: Program, number: int) -> tuple[int, int]:
    """Wait until an epoch has ended; its elements, and its different elements."""
    return until(
        lambda: epochs(program).get(number), f"the end of epoch {number}", seen=partial(program.shown, CLUSTER)
    )


def set_workers(program: Program, workers: int) -> None:
    """`pulumi up` with so many data workers."""
    program.set("workers", str(workers))
    program.up()


@pytest.mark.full
def test_the_training_reads_on_through_faults_and_other_numbers_of_workers(programs: Callable[[str], Program]) -> None:
    program, everything = programs("data_service"), (ELEMENTS, ELEMENTS)
    env = {"ELEMENTS": str(ELEMENTS), "MILLISECONDS": "8", "EPOCHS": "1000000"}
    program.configure(wait="0", env=env)
    set_workers(program, 2)
    assert ended_epoch(program, begun_epoch(program)) == everything
    trains, dispatcher = program.child("worker-0", CLUSTER), program.child("data-dispatcher-0", CLUSTER)

    number = begun_epoch(program)
    program.child("data-dispatcher-0", CLUSTER).kill()
    elements, different = ended_epoch(program, number)
    assert elements == different >= ELEMENTS - IN_ANSWERS, "the dispatcher has gone on from its journal"
    assert program.child("data-dispatcher-0", CLUSTER) != dispatcher

    number = begun_epoch(program)
    program.child("data-worker-0", CLUSTER).kill()
    elements, different = ended_epoch(program, number)
    assert elements == different >= ELEMENTS - MOST_LOST, "at most once: what the worker had begun is lost"
    assert ended_epoch(program, begun_epoch(program)) == everything

    set_workers(program, 3)
    until(partial(serves, program, "data-worker-2"), "the third worker", seen=partial(program.shown, CLUSTER))
    set_workers(program, 1)
    ended_epoch(program, begun_epoch(program))
    assert ended_epoch(program, begun_epoch(program)) == everything, "an epoch does not wait for removed workers"
    assert all(elements == different >= ELEMENTS - MOST_LOST for elements, different in epochs(program).values())
    assert "does not respond: the other workers complete the epoch" in program.log("data-dispatcher-0", CLUSTER)
    rows = {row["hostname"]: row["status"] for row in program.shown(CLUSTER)["tasks"]}
    assert rows == dict.fromkeys(("worker-0", "data-dispatcher-0", "data-worker-0"), "running")
    assert program.child("worker-0", CLUSTER) == trains, "the training was not restarted"
    program.destroy()


def serves(program: Program, hostname: str) -> bool:
    """Whether a data worker serves."""
    return "worker of tf.data service at" in program.log(hostname, CLUSTER)
