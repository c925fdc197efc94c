"""The argument `elastic`: how many workers there may be. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..agent.run_state import GPU_WORKER
from .arg_reader import ArgReader
from .argument import integer, names
from .jobs import MOST_TASKS, JobSpec

ALL_WORKERS = "all-workers"
"""The success rule that does not go with an elastic cluster."""

_MOST_PORTS = 65535


@dataclass(frozen=True)
class ElasticSpec:
    """Workers that are added, removed or lost while the others train."""

    max: int = integer(0, 2, MOST_TASKS)
    """The highest number of workers. Every task knows the addresses of so many from its start. A change restarts all tasks."""


def refuse_elastic(args: ArgReader, most: int, jobs: Sequence[JobSpec]) -> None:
    """Refuse a cluster that cannot be elastic, or not with so many workers.

    Raises:
        SpecError: it is not valid.
    """
    if not args.has("elastic"):
        return
    group = args.group("elastic", names(ElasticSpec))
    if not group.has("max"):
        raise group.error("max", "is missing", 'Set the highest number of workers, such as elastic={"max": 8}.')
    counts = {job.name: job.count for job in jobs}
    worker_port = sum(job.port for job in jobs if job.name == "worker")
    workers = counts.get("worker", 0)
    _refuse_jobs(args, counts)
    if args.string("success") == ALL_WORKERS:
        wrong = f"{ALL_WORKERS!r} cannot be combined with `elastic`: workers may be removed or lost"
        raise args.error("success", wrong, 'Use "worker-0", or "chief" if there is one.')
    if workers > most:
        raise group.error("max", f"{most} is less than workers={workers}", f"Use {workers} or more.")
    others = sum(counts.values()) - workers
    if others + most > MOST_TASKS:
        wrong = f"with {most} workers the cluster has {others + most} tasks, and at most {MOST_TASKS} in all are proven to work"
        raise group.error("max", wrong, f"Use at most {MOST_TASKS - others}.")
    if worker_port and worker_port + most - 1 > _MOST_PORTS:
        wrong = f"{most} workers need the ports {worker_port} to {worker_port + most - 1}"
        raise args.error("jobs.worker.port", wrong, "Use a lower port.")


def _refuse_jobs(args: ArgReader, counts: Mapping[str, int]) -> None:
    if args.boolean("standalone_servers"):
        wrong = "cannot be combined with `standalone_servers`: a client of the servers knows a fixed number of them"
        raise args.error("elastic", wrong, "Remove one of them.")
    if not counts.get("ps"):
        wrong = "the cluster has no parameter server, and without one workers train only together"
        raise args.error("elastic", wrong, "Set ps=1 or more, or remove `elastic`.")
    if counts.get(GPU_WORKER):
        remedy = 'Use `workers` with jobs={"worker": {"gpus": 1}}.'
        raise args.error("elastic", "cannot be combined with `gpu_workers`", remedy)
    if not counts.get("worker"):
        raise args.error("elastic", "the cluster has no worker 0, which always exists", "Set workers=1 or more.")
