"""Elastic runs: workers are added, removed and lost while the others train. Pure.

When a task starts, it gets the addresses of all workers up to the maximum. Workers that do not exist yet have a reserved address, so
that a worker that is added later changes nothing for the others. All workers but worker 0 are optional: nothing waits for them after
the first start, and their end does not decide the result of the run.
"""

from functools import lru_cache
from typing import Callable, Dict, List, Set, Tuple, Union

from ..model.run_spec import RunSpec, TaskSpec
from ..model.run_state import DEAD, FINAL, TENSORBOARD, RunState, TaskState
from ..model.task_command import TaskAddress

FIRST_WORKER = "worker-0"
"""The worker that always exists."""


def optional_workers(spec: RunSpec) -> Dict[str, int]:
    """Hostname to index of all workers that may be added, removed or lost; none where the run is not elastic."""
    return {f"worker-{index}": index for index in range(1, spec.max_workers)}


def is_optional(spec: RunSpec, task: Union[TaskSpec, TaskState]) -> bool:
    """Whether the task is an optional worker."""
    return task.job == "worker" and 0 < task.index < spec.max_workers


def joins_alone(spec: RunSpec, task: Union[TaskSpec, TaskState]) -> bool:
    """Whether the task starts, ends and is lost while the others continue: an optional worker, or one with an unlisted address."""
    return is_optional(spec, task) or spec.is_unlisted(task.job)


def awaited_tasks(run: RunState) -> List[TaskState]:
    """The tasks that the start barrier waits for: before the first start all training tasks; after it those that are not optional, and
    workers that exist but have no address here, after a move or in a run that was not elastic before. Never unlisted ones."""
    return [
        task
        for task in listed_tasks(run)
        if not run.has_started
        or not is_optional(run.spec, task)
        or (task.report.instance and task.hostname not in run.reserved)
    ]


def listed_tasks(run: RunState) -> List[TaskState]:
    """The training tasks with addresses that the others get."""
    return [task for task in run.training_tasks if not run.spec.is_unlisted(task.job)]


def known_addresses(run: RunState) -> Dict[str, str]:
    """Hostname to address of the listed tasks and of all optional workers. A worker that is not ready has its reserved address."""
    reserved = {name: run.reserved[name] for name in optional_workers(run.spec) if name in run.reserved}
    tasks = [task for task in listed_tasks(run) if task.ready or not is_optional(run.spec, task)]
    return {**reserved, **{task.hostname: task.address for task in tasks}}


def lacks_addresses(run: RunState) -> bool:
    """Whether an optional worker has no address yet."""
    addresses = known_addresses(run)
    return any(name not in addresses for name in optional_workers(run.spec))


def remember_addresses(run: RunState) -> None:
    """Reserve for each optional worker the address that it has now."""
    addresses = known_addresses(run) if run.spec.max_workers else {}
    run.reserved = {name: addresses[name] for name in optional_workers(run.spec) if name in addresses}


def reserve_addresses(run: RunState, choose_port: Callable[[], int]) -> None:
    """Reserve an address for each optional worker that has none, when worker 0 has one: on the same host, or, where hosts have the
    names of tasks, on its own. A worker that the start barrier waits for finds a port itself, unless it has ended before.
    """
    first = run.tasks.get(FIRST_WORKER)
    if not run.spec.max_workers or first is None or not first.ready:
        return
    addresses = known_addresses(run)
    has_names = _is_named(first)
    for name, index in optional_workers(run.spec).items():
        task = run.tasks.get(name)
        host = name + first.host[len(FIRST_WORKER) :] if has_names else first.host
        if name in addresses and (task is not None or addresses[name].rpartition(":")[0] == host):
            continue
        if task is not None and task.state not in FINAL and (not run.has_started or task.report.instance):
            continue
        chosen = run.spec.worker_port + index if run.spec.worker_port else 0
        run.reserved[name] = f"{host}:{chosen or (first.port if has_names else choose_port())}"


def _is_named(task: TaskState) -> bool:
    """Whether the host of a task has its name: `worker-0` in a Swarm, `worker-0.SERVICE` in Kubernetes."""
    return task.host.partition(".")[0] == task.hostname


def reserved_port(run: RunState, hostname: str) -> int:
    """The port that is reserved for a task; 0 for none."""
    return int(run.reserved[hostname].rpartition(":")[2]) if hostname in run.reserved else 0


def unused_ports(run: RunState) -> Set[int]:
    """The reserved ports of workers that do not exist, where hosts have no names: another program on the machine could use them.
    None where the user has chosen the ports: a launcher must be able to take them before the controller knows of its worker.
    """
    first = run.tasks.get(FIRST_WORKER)
    if not run.reserved or run.spec.worker_port or first is None or _is_named(first) or run.result is not None:
        return set()
    return {reserved_port(run, name) for name in run.reserved if name not in run.tasks}


def may_have_started(run: RunState, task: TaskState) -> bool:
    """Whether an order may have started the program of this training task since the start barrier began."""
    return task.hostname in run.address_book or (run.barrier_passed and run.spec.is_unlisted(task.job))


def address_book(run: RunState, task: TaskState) -> List[TaskAddress]:
    """What this task gets when it starts: the listed tasks, and the optional workers that do not exist; and itself. It is the same
    list for all tasks whose addresses the run knows, which nobody changes."""
    addresses = {**run.address_book, task.hostname: task.address}
    tasks = [(task.hostname, task.job, task.index) for task in run.tasks.values()]
    absent = [(name, "worker", index) for name, index in optional_workers(run.spec).items() if name not in run.tasks]
    return _address_book((*tasks, *absent), tuple(addresses.items()))


@lru_cache(maxsize=1)
def _address_book(tasks: Tuple[Tuple[str, str, int], ...], addresses: Tuple[Tuple[str, str], ...]) -> List[TaskAddress]:
    known = dict(addresses)
    return [TaskAddress(hostname, job, index, known[hostname]) for hostname, job, index in tasks if hostname in known]


def tasks_continue(before: RunSpec, after: RunSpec) -> bool:
    """Whether another specification of the same run changes only which tasks exist that join alone, so that the others continue."""
    return _required(before) == _required(after)


def _required(spec: RunSpec) -> List[object]:
    """The tasks that do not join alone, and what determines the addresses of the optional workers."""
    tasks = [task for task in spec.tasks if not joins_alone(spec, task) and task.job != TENSORBOARD]
    return [spec.max_workers, spec.worker_port, *tasks]


def is_left_out(run: RunState, task: TaskState) -> bool:
    """Whether it is an optional worker that has failed for good, while the run continues without it."""
    return is_optional(run.spec, task) and task.state in DEAD and run.result is None
