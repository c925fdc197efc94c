"""`tfdeploy events`: what happened, and why."""

import datetime
import json
from collections.abc import Sequence

from ...agent.model.events import ENGINE_STATE, MACHINE_LOST, TASK_LOST, Event
from ...agent.model.run_state import ENGINE_STARTING, LOST
from ...agent.record.terminal_text import safe
from ...report.events import describe, document, with_waits
from ..cluster_selection import ClusterQuery, select_cluster
from ..output import print_json, print_message, print_result, sleep_while_read
from ..parser import Parser
from ..snapshot import Snapshot, snapshots, take_snapshot

_POLL_SECONDS = 0.5
_LEAST_WIDTH = 12


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    parser.add_argument("--follow", "-f", action="store_true", help="Print new events until the run ends.")


def events(query: ClusterQuery, follow: bool = False) -> None:
    """Show the events of the current run.

    Each event has a reason. The list ends with what the engine reports now of tasks that do not run. With --json, the output is one
    list; with --json --follow, one document per line.
    """
    entry = select_cluster(query)
    if not follow:
        snapshot = take_snapshot(entry)
        _print_all(query, [*with_waits(snapshot.events), *current_events(snapshot)])
        if not snapshot.events:
            print_message(f"{entry.title}: no events yet.")
        return
    printed: list[Event] = []
    for snapshot in snapshots(entry, lambda: sleep_while_read(_POLL_SECONDS)):
        current = with_waits(snapshot.events)
        if current[: len(printed)] != printed:
            printed = []  # another run
        _print_each(query, current[len(printed) :])
        printed = current


def current_events(snapshot: Snapshot) -> list[Event]:
    """What the engine reports of tasks that it starts or cannot start, and of lost tasks and machines."""
    observed, report = snapshot.observed, snapshot.report
    tasks = [
        Event(ENGINE_STATE, observed.at, hostname, state=task.state, reason=task.reason)
        for hostname, task in sorted((observed.engine or {}).items())
        if not report.decided and (task.state in ENGINE_STARTING or (task.reason and not task.alive))
    ]
    reported = {event.task for event in tasks}
    machines = {row["machine"]: row["status"] for row in report.machines}
    lost = [
        _lost(observed.at, row["hostname"], row["machine"], machines.get(row["machine"], ""))
        for row in report.tasks
        if row["status"] == LOST and row["hostname"] not in reported
    ]
    return [*tasks, *lost]


def _lost(at: float, hostname: str, machine: str, status: str) -> Event:
    kind = TASK_LOST if status in ("", "connected") else MACHINE_LOST
    return Event(kind, at, hostname, machine=machine, state=status)


def _print_all(query: ClusterQuery, events: Sequence[Event]) -> None:
    if query.as_json:
        print_json([document(event) for event in events])
        return
    width = max([_LEAST_WIDTH, *(len(event.task) for event in events)])
    for event in events:
        print_result(_line(event, width))


def _print_each(query: ClusterQuery, events: Sequence[Event]) -> None:
    for event in events:
        print_result(json.dumps(document(event)) if query.as_json else _line(event, _LEAST_WIDTH))


def _line(event: Event, width: int) -> str:
    at = datetime.datetime.fromtimestamp(event.at).strftime("%Y-%m-%d %H:%M:%S")
    what, why = describe(event)
    return safe(f"{at}  {event.task or 'run':<{width}}  {what}{f': {why}' if why else ''}", False)
