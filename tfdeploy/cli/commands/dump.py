"""`tfdeploy dump`: what the tasks of a cluster do now."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...agent.model.run_state import RUNNING
from ...agent.model.task_dump import PythonThread, TaskDump
from ...agent.record.progress import Progress
from ...backends.backend import access
from ...report.progress import rate_text, step_text
from ...units import text_of_size
from ..cluster_selection import ClusterQuery, select_existing_cluster
from ..output import print_json, print_prose, print_result, print_table
from ..parser import Parser
from ..snapshot import take_snapshot
from .logs import select_tasks

_COLUMNS = ("hostname", "status", "step", "speed", "cpus", "memory")


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    text = "Tasks, such as worker-0, or all tasks of a job, such as worker. Default: all tasks."
    parser.add_argument("names", nargs="*", metavar="HOSTNAME|JOB", help=text)


def dump(query: ClusterQuery, names: Sequence[str] = ()) -> None:
    """Show what each task does now, with Python stacks.

    That is its step, speed, processors and memory too. Launchers observe their programs for about a second, and stop nothing.
    """
    snapshot = take_snapshot(select_existing_cluster(query))
    rows = {row["hostname"]: row["status"] for row in snapshot.report.tasks}
    hostnames = select_tasks(snapshot.entry.title, names, dict.fromkeys(rows, ""))
    run = snapshot.run_state
    running = [name for name in hostnames if run and name in run.tasks and run.tasks[name].state == RUNNING]
    cluster = snapshot.entry.cluster
    dumps = access(cluster["backend"]).dumps(cluster, running) if running else {}
    progress = snapshot.report.progress
    if query.as_json:
        tasks = [_to_dict(name, rows[name], progress.get(name, Progress()), dumps.get(name)) for name in hostnames]
        print_json({"tasks": tasks})
        return
    table = [_row(name, rows[name], progress.get(name, Progress()), dumps.get(name)) for name in hostnames]
    print_table(table, _COLUMNS, query.wide)
    _print_stacks({name: dumps.get(name) for name in running})
    if not running:
        print_prose("No task runs.")


def _to_dict(hostname: str, status: str, progress: Progress, dump: TaskDump | None) -> dict[str, Any]:
    steps = {"step": progress.step, "steps_per_second": progress.rate, "at": progress.stepped_at}
    return {"hostname": hostname, "status": status, "progress": steps, "dump": asdict(dump) if dump else None}


def _row(hostname: str, status: str, progress: Progress, dump: TaskDump | None) -> dict[str, str]:
    row = {"hostname": hostname, "status": status, "step": step_text(progress), "speed": rate_text(progress)}
    if dump is None or not dump.processes:
        return row | {"cpus": "", "memory": ""}
    return row | {"cpus": f"{dump.cpus:.2f}", "memory": text_of_size(dump.memory)}


def _print_stacks(dumps: Mapping[str, TaskDump | None]) -> None:
    """The stacks; those of several tasks together where they are the same."""
    tasks: dict[str, list[str]] = {}
    for hostname, dump in dumps.items():
        tasks.setdefault("\n".join(_stack_lines(dump)), []).append(hostname)
    for text, hostnames in tasks.items():
        if text:
            print_result(f"\n{', '.join(hostnames)}:\n{text}")


def _stack_lines(dump: TaskDump | None) -> Sequence[str]:
    if dump is None:
        return ["  its launcher does not respond"]
    lines = [f"  {note}" for note in dump.notes]
    for number, thread in enumerate(dump.python):
        lines += _thread_lines(thread, number)
    return lines


def _thread_lines(thread: PythonThread, number: int) -> list[str]:
    name = thread.name or ("MainThread" if number == 0 else f"thread {number}")
    return [f"  {name}", *(f"    {frame}" for frame in thread.frames)]
