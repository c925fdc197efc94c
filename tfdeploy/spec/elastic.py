"""The argument `elastic`: how many workers there may be. Pure."""

from collections.abc import Mapping

from ..agent.run_state import GPU_WORKER
from .arg_reader import ArgReader

KEYS = ("max",)

ALL_WORKERS = "all-workers"
"""The success rule that does not go with an elastic cluster."""

_MOST_PORTS = 65535


def max_workers(args: ArgReader, counts: Mapping[str, int], worker_port: int, most_tasks: int) -> int:
    """The highest number of workers; 0 where the cluster is not elastic. `counts` is job to the number of its tasks.

    Raises:
        SpecError: it is not valid, or the cluster cannot be elastic.
    """
    group = args.group("elastic", KEYS)
    if not args.has("elastic"):
        return 0
    if not group.has("max"):
        raise group.error("max", "is missing", 'Set the highest number of workers, such as elastic={"max": 8}.')
    most = group.integer("max", 0, 2, most_tasks)
    workers = counts.get("worker", 0)
    _refuse_jobs(args, counts)
    if args.string("success") == ALL_WORKERS:
        wrong = f"{ALL_WORKERS!r} cannot be combined with `elastic`: workers may be removed or lost"
        raise args.error("success", wrong, 'Use "worker-0", or "chief" if there is one.')
    if workers > most:
        raise group.error("max", f"{most} is less than workers={workers}", f"Use {workers} or more.")
    others = sum(counts.values()) - workers
    if others + most > most_tasks:
        wrong = f"with {most} workers the cluster has {others + most} tasks, and at most {most_tasks} in all are proven to work"
        raise group.error("max", wrong, f"Use at most {most_tasks - others}.")
    if worker_port and worker_port + most - 1 > _MOST_PORTS:
        wrong = f"{most} workers need the ports {worker_port} to {worker_port + most - 1}"
        raise args.error("jobs.worker.port", wrong, "Use a lower port.")
    return most


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
