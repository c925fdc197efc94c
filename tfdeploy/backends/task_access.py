"""What `TaskAccess` has in common on all backends."""

from collections.abc import Callable, Container, Iterable
from contextlib import suppress

from ..agent.control.elastic import is_left_out
from ..agent.model.run_state import FINAL, RUNNING, WORKERS, RunState, TaskState
from ..agent.wire.rpc import CallError
from ..errors import BackendError, NotFound
from . import controller_calls
from .base import ClusterRef
from .controller_calls import ControllerApi

_TRAINERS = ("chief", *WORKERS)


def no_task(title: str, hostname: str, hostnames: Iterable[str]) -> NotFound:
    """The error where a cluster has no task of that name."""
    return NotFound(f"{title} has no task {hostname!r}; it has {', '.join(hostnames)}.")


def require_task(by_hostname: Container[str], cluster: ClusterRef, hostname: str, kind: str) -> None:
    """Raise when the engine does not have a task; `kind` is what it has for each.

    Raises:
        NotFound: with the command that creates it.
    """
    if hostname not in by_hostname:
        remedy = "`pulumi up --refresh` creates it again, unless the cluster was destroyed"
        raise NotFound(f"{hostname} of {cluster['name']} does not have a {kind}. {remedy}.")


def task_of(run: RunState | None, cluster: ClusterRef, hostname: str) -> TaskState:
    """A task of the current run, by its hostname.

    Raises:
        NotFound: no task has that name.
    """
    if run is None:
        raise NotFound(f"{cluster['name']} has no run yet. `tfdeploy status` prints what it waits for.")
    if hostname not in run.tasks:
        raise no_task(cluster["name"], hostname, run.tasks)
    return run.tasks[hostname]


def to_restart(run: RunState | None, cluster: ClusterRef, hostname: str) -> TaskState:
    """A task that may be restarted.

    Raises:
        BackendError: the task has ended, and this run does not start it again.
    """
    task = task_of(run, cluster, hostname)
    can_restart = run is not None and ((task.is_auxiliary and not run.stop_requested) or is_left_out(run, task))
    if task.state in FINAL and not can_restart:
        raise BackendError(
            f"{hostname} has ended ({task.state}), and a finished task is not restarted. "
            "Change the code or an argument, and `pulumi up` starts a new run."
        )
    return task


def to_copy_from(run: RunState | None, cluster: ClusterRef, hostname: str) -> TaskState:
    """A task with files that can be copied.

    Raises:
        BackendError: the task has ended; with the command that copies what is stored of its run.
    """
    task = task_of(run, cluster, hostname)
    if run is not None and task.state in FINAL:
        raise BackendError(
            f"{hostname} has ended ({task.state}), and files are copied from a task while it runs. "
            f"`tfdeploy cp run:{run.spec.id}/PATH DEST` copies what is stored of the run."
        )
    return task


def lost_in_memory(run: RunState | None, hostname: str) -> list[str]:
    """What part of the training is lost with the memory of a task, in sentences."""
    training_tasks = run.training_tasks if run else []
    task = next((task for task in training_tasks if task.hostname == hostname), None)
    if task is None or task.state in FINAL:
        return []
    if task.job == "ps":
        lost = "The changes since the last checkpoint of the variables in its memory are lost"
        return [f"{lost}: the sessions of the other tasks fail, and resume from that checkpoint."]
    trainers = sum(task.job in _TRAINERS for task in training_tasks)
    if task.job in _TRAINERS and trainers == 1 and not any(task.job == "ps" for task in training_tasks):
        return ["The changes since the last checkpoint are lost: it resumes from that checkpoint."]
    return []


def address_of(run: RunState | None, cluster: ClusterRef, hostname: str) -> tuple[str, int]:
    """The host and the port on which a task listens, as its peers reach it.

    Raises:
        BackendError: the task does not listen now.
    """
    task = task_of(run, cluster, hostname)
    if task.state in FINAL:
        raise BackendError(f"{hostname} has ended ({task.state}): it no longer listens.")
    if not task.port:
        raise BackendError(f"{hostname} has no address yet: it is {task.state}. `tfdeploy status` prints its status.")
    return task.host, task.port


def announce(controller: ControllerApi, hostname: str, action: str) -> None:
    """Report to the controller that the user restarts a task, so that this does not count as a failure. A controller that does
    not respond, or is too old for this call, counts it as an interruption."""
    with suppress(OSError, CallError):
        controller.json("POST", "/new-launcher", {"hostname": hostname, "action": action})


def wait_until_running(current_run: Callable[[], RunState | None], before: TaskState, seconds: float) -> None:
    """Wait until the task has another launcher, and its program runs again if it ran before.

    Raises:
        BackendError: it does not within so many seconds.
    """

    def is_running() -> bool:
        run = current_run()
        task = run.tasks.get(before.hostname) if run else None
        if run is None or task is None or task.report.instance == before.report.instance:
            return False
        return run.result is not None or before.state != RUNNING or task.state == RUNNING or task.state in FINAL

    controller_calls.wait_for(is_running, f"{before.hostname} did not run again", seconds)
