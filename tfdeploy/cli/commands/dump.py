"""`tfdeploy dump`: what the tasks of a cluster do now."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from ...agent.run_state import RUNNING
from ...agent.task_dump import PythonThread
from ...errors import NotFound
from ...report.peer_traffic import Traffic, traffic
from ...report.progress import rate_text, step_text
from ...report.task_sight import TaskSight
from ...units import moment, text_of_size
from .. import completion
from ..common import print_json, print_message, print_prose, print_result
from ..exit_codes import FAILED
from ..option import Argument, Option
from ..output import print_table
from ..select import ClusterQuery, select_cluster, select_existing_cluster
from ..task_sights import DumpedTasks, dump_cluster, recorded_dump
from .explain import print_findings
from .logs import find_run, select_tasks

_COLUMNS = ("hostname", "status", "step", "speed", "cpus", "memory", "waits")
_TRAFFIC_COLUMNS = ("hostname", "peer", "sent", "received")
_MAX_PEERS = 40


def dump(
    query: ClusterQuery,
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[HOSTNAME|JOB]...",
            help="Tasks, such as worker-0, or all tasks of a job, such as worker. Default: all tasks.",
            show_default=False,
            autocompletion=completion.hostnames,
        ),
    ] = None,
    run: Annotated[
        str,
        Option(
            help="Run whose last stored dump is shown.",
            show_default="now",
        ),
    ] = "",
) -> None:
    """Show what each task does now, and what it waits for.

    Launchers observe their programs for about five seconds, and stop nothing. The exit code is 0 if there is no finding, else 1.
    """
    dumped, rows, hostnames = _recorded(query, run, names or []) if run else _observed(query, names or [])
    findings = dumped.findings
    sights = [sight for sight in dumped.sights if sight.hostname in hostnames]
    moved = [
        item for item in traffic([sight.dump for sight in dumped.sights if sight.dump]) if item.hostname in hostnames
    ]
    if query.as_json:
        print_json(
            {
                "findings": [finding._asdict() for finding in findings],
                "tasks": [_to_dict(sight) for sight in sights],
                "traffic": [asdict(item) for item in moved],
            }
        )
    else:
        print_table([_row(hostname, rows[hostname], sights) for hostname in hostnames], _COLUMNS, query.wide)
        _print_traffic(moved, query.wide)
        _print_stacks(sights)
        print_result()
        print_findings(findings)
        if not findings:
            print_prose("Nothing is found that holds the training up." if sights else "No task runs.")
    if findings:
        sys.exit(FAILED)


def _observed(query: ClusterQuery, names: Sequence[str]) -> tuple[DumpedTasks, dict[str, str], list[str]]:
    """What the tasks do now, the status of each, and the selected ones."""
    dumped = dump_cluster(select_existing_cluster(query))
    rows = {row["hostname"]: row["status"] for row in dumped.snapshot.report.tasks}
    return dumped, rows, select_tasks(dumped.snapshot.entry.title, names, dict.fromkeys(rows, ""))


def _recorded(query: ClusterQuery, run_id: str, names: Sequence[str]) -> tuple[DumpedTasks, dict[str, str], list[str]]:
    """The same from the record of a run.

    Raises:
        NotFound: there is no such run, or no dump of it.
    """
    entry = select_cluster(query)
    record, _, _ = find_run(entry, run_id, [])
    state = record.load(run_id)
    dumped = recorded_dump(record, state) if state else DumpedTasks(0.0, [])
    if not dumped.sights:
        raise NotFound(
            f"{entry.title}: the record has no dump of the run {run_id}. A run gets one when it makes no steps for long."
        )
    rows = {sight.hostname: RUNNING for sight in dumped.sights}
    hostnames = select_tasks(entry.title, names, dict.fromkeys(rows, ""))
    print_message(f"at {moment(dumped.at)}")
    return dumped, rows, hostnames


def _to_dict(sight: TaskSight) -> dict[str, Any]:
    progress = {"step": sight.progress.step, "steps_per_second": sight.progress.rate, "at": sight.progress.stepped_at}
    return {"hostname": sight.hostname, "progress": progress, "dump": sight.dump.to_dict() if sight.dump else None}


def _row(hostname: str, status: str, sights: Sequence[TaskSight]) -> dict[str, str]:
    row = dict.fromkeys(_COLUMNS, "") | {"hostname": hostname, "status": status}
    for sight in sights:
        if sight.hostname == hostname:
            row |= {"step": step_text(sight.progress), "speed": rate_text(sight.progress)}
            if sight.dump is None:
                row["waits"] = "no response of its launcher"
            elif sight.dump.processes:
                numbers = {"cpus": f"{sight.dump.cpus:.2f}", "memory": text_of_size(sight.dump.memory)}
                row |= numbers | {"waits": sight.where if sight.main and sight.main.wait else ""}
    return row


def _print_traffic(items: Sequence[Traffic], wide: bool) -> None:
    if items:
        largest = sorted(items, key=lambda item: -item.sent - item.received)[:_MAX_PEERS]
        rows = [
            {
                "hostname": item.hostname,
                "peer": item.peer,
                "sent": f"{text_of_size(item.sent)}/s",
                "received": f"{text_of_size(item.received)}/s",
            }
            for item in sorted(largest, key=lambda item: (item.hostname, item.peer))
        ]
        print_result()
        print_table(rows, _TRAFFIC_COLUMNS, wide)
        if len(items) > len(rows):
            print_message(f"{len(items) - len(rows)} more peers exchange less.")


def _print_stacks(sights: Sequence[TaskSight]) -> None:
    """The stacks; those of several tasks together where they are the same."""
    tasks: dict[str, list[str]] = {}
    for sight in sights:
        if sight.dump is not None:
            lines = [f"  {note}" for note in sight.dump.notes]
            for number, thread in enumerate(sight.dump.python):
                lines += _stack_lines(thread, number)
            tasks.setdefault("\n".join(lines), []).append(sight.hostname)
    for text, hostnames in tasks.items():
        if text:
            print_result(f"\n{', '.join(hostnames)}:\n{text}")


def _stack_lines(thread: PythonThread, number: int) -> list[str]:
    name = thread.name or ("MainThread" if number == 0 else f"thread {number}")
    return [f"  {name}", *(f"    {frame}" for frame in thread.frames)]
