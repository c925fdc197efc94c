"""What `pulumi up` and `tfdeploy status` do on `local`, in numbers that do not scatter: for two sizes of a cluster, so that what grows
with the number of tasks is known.

A number that was lowered is lowered here. One that grows is a question: what for?
"""

from pathlib import Path

import pytest

from tests.counting import (
    BODY,
    PROGRAM,
    PROVIDER,
    READ,
    REQUEST,
    START,
    WRITE,
    Acts,
    CountedProcesses,
    Linear,
    expected,
)
from tests.integration.conftest import Project
from tests.verbs import COMMAND, Verbs
from tests.waiting import until
from tfdeploy.backends.local.supervisor import marked

PS, SIZES = 1, (3, 7)
"""Parameter servers, and all tasks of the two clusters."""

CONTROLLER, SUPERVISORD = "controller.sock", "supervisor.sock"

JOB = 'command=["python", "train.py"], code="code", ps=1, workers={workers}, wait="0"'
TRAIN = "import time\ntime.sleep(1000)\n"

FIRST_UP = {
    "processes started": Linear(1),
    "calls of supervisord": Linear(5, 4),
    "calls of the controller": Linear(3),
    "files read": Linear(8, 1),
    "files written": Linear(12, 9),
}
"""Of the program and the dynamic resources. The process is supervisord."""

NO_OP_UP = {
    "processes started": Linear(0),
    "calls of supervisord": Linear(1),
    "calls of the controller": Linear(1),
    "files read": Linear(10, 1),
    "files written": Linear(1),
}

LOOK = {
    "processes started": Linear(0),
    "calls of supervisord": Linear(1),
    "calls of the controller": Linear(1),
    "files read": Linear(2),
    "files written": Linear(0),
}

PROCESSES = Linear(2, 2)
"""Of a cluster: supervisord and controller; a launcher and a program for each task."""

BYTES_OF_FIRST_UP, BYTES_OF_NO_OP_UP = Linear(5000, 1600), Linear(600)
"""Sent to the controller and to supervisord, at most: the run with its code, and four calls of supervisord for each task."""

BYTES_OF_A_LOOK = 200
"""Sent to the controller, whatever the number of tasks."""


def numbers(project: Project, *acts: Acts) -> dict[str, int]:
    """What the processes of a command did about the cluster."""
    places, state = project.places(), Path(project.env["XDG_STATE_HOME"])
    every = Acts(act for one in acts for act in one.all)
    # A program may run already when it is to be started. supervisord names its socket for a moment otherwise.
    calls = [act for act in every.of(BODY) if Path(act.to).name.startswith(SUPERVISORD)]
    requests = [act for act in every.of(REQUEST) if Path(act.to).name == CONTROLLER]
    # A long path of a socket begins at the descriptor of the cluster's folder, which is opened for each connection.
    read = [path for path in every.files(READ, state) if state / path != places.home]
    return {
        "processes started": len(every.of(START)),
        "calls of supervisord": len([act for act in calls if act.what != "supervisor.startProcess"]),
        "calls of the controller": len(requests),
        "files read": len(read),
        "files written": len(every.files(WRITE, state)),
    }


def bytes_sent(acts: Acts, *sockets: str) -> int:
    """The bytes that a command sent to the cluster's processes."""
    return sum(act.size for kind in (REQUEST, BODY) for act in acts.of(kind) if Path(act.to).name.startswith(sockets))


def up(project: Project, folder: str) -> Acts:
    counted = CountedProcesses(project.folder / folder)
    project.up(env=counted.environment)
    acts = Acts([*counted.acts(PROGRAM).all, *counted.acts(PROVIDER).all])
    assert counted.acts(PROGRAM).all, counted.commands()
    return acts


@pytest.mark.parametrize("tasks", SIZES)
def test_an_up_and_a_look_do_so_much_for_so_many_tasks(project: Project, tasks: int) -> None:
    project.write(JOB.format(workers=tasks - PS), TRAIN)
    first = up(project, "first")
    assert numbers(project, first) == expected(FIRST_UP, tasks), first.all
    assert bytes_sent(first, CONTROLLER, SUPERVISORD) <= BYTES_OF_FIRST_UP.of(tasks)
    hostnames = ["ps-0", *(f"worker-{index}" for index in range(tasks - PS))]
    project.until_running(*hostnames)
    until(
        lambda: len(marked(project.places().home)) == PROCESSES.of(tasks),
        "all processes, of which one may just become its program",
    )

    second = up(project, "second")
    assert numbers(project, second) == expected(NO_OP_UP, tasks), second.all
    assert bytes_sent(second, CONTROLLER, SUPERVISORD) <= BYTES_OF_NO_OP_UP.of(tasks)

    counted = CountedProcesses(project.folder / "look")
    code, _, err = Verbs(project.program, {**project.env, **counted.environment}).call("status")
    assert code == 0, err
    look = counted.acts(COMMAND)
    assert numbers(project, look) == expected(LOOK, tasks), look.all
    assert bytes_sent(look, CONTROLLER) <= BYTES_OF_A_LOOK
    project.destroy()
