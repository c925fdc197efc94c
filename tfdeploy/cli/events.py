"""`tfdeploy events`: what happened, and why."""

import datetime
import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .. import registry
from ..agent.states import LOST
from ..timeline import Happening, happenings
from .asking import Asked, answer, say, tell
from .finding import one
from .logs import pause
from .looking import Seen, look, over
from .terminal import safe

_POLL_SECONDS = 0.5
_ON_THE_WAY = ("scheduled", "pulling", "starting")
_LEAST = 12


def events(
    asked: Asked,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job is over.")] = False,
) -> None:
    """Show what happened in this run, with reasons: who came, waited for whom, started, ended how, was restarted or lost.

    What the engine says now of tasks that do not run stands at the end. With --json it is one list; with --follow too, one
    document a line.
    """
    entry = one(asked)
    seen = look(entry)
    told = happenings(seen.events)
    if not follow:
        _print(asked, [*told, *now(seen)])
        if not told:
            tell(f"{entry.title}: nothing has happened yet.")
        return
    _each(asked, told)
    while not over(seen):
        pause(_POLL_SECONDS)
        seen = look(registry.known(entry))
        fresh = happenings(seen.events)
        if fresh[: len(told)] != told:
            told = []  # another run has begun
        _each(asked, fresh[len(told) :])
        told = fresh


def now(seen: Seen) -> list[Happening]:
    """What the engine says of tasks that it brings, or cannot bring, and of machines that are not as they should be."""
    tasks = [
        Happening(seen.sight.at, hostname, task.word, task.reason)
        for hostname, task in sorted((seen.sight.engine or {}).items())
        if not seen.report.decided and (task.word in _ON_THE_WAY or (task.reason and not task.alive))
    ]
    known = {task.task for task in tasks}
    machines = {row["machine"]: row["status"] for row in seen.report.machines}
    lost = [
        _lost(seen.sight.at, row["hostname"], row["machine"], machines.get(row["machine"], ""))
        for row in seen.report.tasks
        if row["status"] == LOST and row["hostname"] not in known
    ]
    return [*tasks, *lost]


def _lost(at: float, hostname: str, machine: str, status: str) -> Happening:
    if status in ("", "connected"):
        return Happening(at, hostname, LOST, f"its launcher on {machine} is gone")
    return Happening(at, hostname, "machine lost", f"{machine} is {status}")


def _print(asked: Asked, found: Sequence[Happening]) -> None:
    if asked.as_json:
        answer([_document(one) for one in found])
        return
    width = max([_LEAST, *(len(one.task) for one in found)])
    for happening in found:
        say(_line(happening, width))


def _each(asked: Asked, found: Sequence[Happening]) -> None:
    for happening in found:
        say(json.dumps(_document(happening)) if asked.as_json else _line(happening, _LEAST))


def _line(happening: Happening, width: int) -> str:
    at = datetime.datetime.fromtimestamp(happening.at).strftime("%Y-%m-%d %H:%M:%S")
    reason = f": {happening.reason}" if happening.reason else ""
    return safe(f"{at}  {happening.task or 'job':<{width}}  {happening.what}{reason}", False)


def _document(happening: Happening) -> dict[str, Any]:
    return happening._asdict()
