"""`tfdeploy logs`: what tasks print."""

import datetime
import re
import select
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from .. import registry
from ..agent.record import Record
from ..backends.access import no_task
from ..errors import NotFound
from ..quantities import DURATION_FORM, seconds
from ..registry import Entry
from . import completing, writing
from .asking import Asked, tell
from .finding import one
from .following import Follower, Line, printed
from .looking import look, over

_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Wanted:
    """Which lines are asked for."""

    since: float = 0.0
    pattern: re.Pattern[str] | None = None
    only_stderr: bool = False
    attempts: dict[str, int] = field(default_factory=dict)
    """Hostname to the one attempt that is asked for; nothing for all."""
    tail: int | None = None

    def takes(self, line: Line) -> bool:
        """Whether a line is one of them."""
        return (
            line.at >= self.since
            and (not self.only_stderr or line.pipe == "stderr")
            and (self.pattern is None or self.pattern.search(line.text) is not None)
            and (not self.attempts or self.attempts.get(line.hostname) == line.attempt)
        )

    def last(self, lines: Iterable[Line]) -> Iterable[Line]:
        """Those of these lines that are asked for: of each task the last ones, where so many are."""
        if self.tail is None:
            return filter(self.takes, lines)
        ends: dict[str, deque[Line]] = {}
        for line in filter(self.takes, lines):
            ends.setdefault(line.hostname, deque(maxlen=self.tail)).append(line)
        return sorted((line for end in ends.values() for line in end), key=lambda line: line.at)


def logs(
    asked: Asked,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HOSTNAME|CONTAINER]...",
            help="Tasks, such as worker-0, or all of a job, such as worker; by default all tasks.",
            show_default=False,
            autocompletion=completing.hostnames,
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job is over.")] = False,
    since: Annotated[str, typer.Option(help="Only what came since, such as 10m or 2026-11-21T04:12.")] = "",
    grep: Annotated[str, typer.Option(help="Only lines in which this regular expression is found.")] = "",
    stderr: Annotated[bool, typer.Option("--stderr", help="Only what came on stderr.")] = False,
    previous: Annotated[bool, typer.Option("--previous", "-p", help="Of the attempt before this one.")] = False,
    tail: Annotated[int | None, typer.Option("--tail", "-n", min=0, help="Only so many last lines of a task.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write it to this file: byte for byte where it is one task's.", dir_okay=False)
    ] = None,
    run: Annotated[str, typer.Option(help="Of this earlier run.", show_default="the present one")] = "",
) -> None:
    """Show what tasks print, in the order of time; also while the first `up` runs, and after `destroy`.

    With --json it is one list; with --follow too, one document a line.
    """
    if follow and (previous or run):
        raise typer.BadParameter("--follow is for what comes; --previous and --run are for what is over.")
    entry = one(asked)
    record, run, hostnames = _where(entry, run, names or [])
    wanted = Wanted(_since(since), _pattern(grep), stderr, _before(record, run, hostnames) if previous else {}, tail)
    with writing.writer(asked.as_json, follow, save, hostnames) as write:
        if follow:
            _follow(entry, names or [], wanted, write)
        else:
            write(wanted.last(printed(record, run, hostnames) if run else ()))
    if not follow and not run:
        tell(f"{entry.title}: no run has been given yet; `tfdeploy logs --follow` waits for it.")


def _where(entry: Entry, run: str, names: Sequence[str]) -> tuple[Record, str, list[str]]:
    """The record that has the run, the run, and its tasks that are asked for; run "" where none has been given yet.

    Raises:
        NotFound: there is no such run, or no such task.
    """
    seen = look(entry)
    present = seen.sight.view["job"]
    record = Record(Path(seen.sight.kept_at))
    if present is None and not run:
        return record, "", [task["hostname"] for task in seen.report.tasks]
    name = run or present["run"]["id"]
    records = [record, *map(Record, registry.all_kept(entry.cluster))]
    found = next((one for one in records if one.load(name) is not None), None)
    if found is None:
        known = ", ".join(dict.fromkeys(run for one in records for run in one.runs())) or "none"
        raise NotFound(f"{entry.title} has no run {name!r}; it has {known}.")
    job = found.load(name)
    containers = {task.hostname: task.container for task in job.tasks.values()} if job else {}
    return found, name, chosen(entry.title, names, containers)


def chosen(title: str, names: Sequence[str], containers: dict[str, str]) -> list[str]:
    """The tasks that are asked for, by hostname (`worker-0`, `worker:0`), job, or the beginning of a container's identity.

    Raises:
        NotFound: there is none of that name.
    """
    found: list[str] = []
    for name in names:
        wanted = name.replace(":", "-").replace("_", "-")
        hits = [one for one in containers if one == wanted or one.rpartition("-")[0] == wanted]
        hits = hits or [one for one, container in containers.items() if container and container.startswith(name)]
        if not hits:
            raise no_task(title, name, containers)
        found += hits
    return [one for one in containers if one in found] if names else list(containers)


def _before(record: Record, run: str, hostnames: Sequence[str]) -> dict[str, int]:
    """Hostname to the attempt before the present one.

    Raises:
        NotFound: none of these tasks has had one.
    """
    job = record.load(run) if run else None
    found = {}
    for hostname in hostnames if job else ():
        present = job.tasks[hostname].attempt if job else 0
        earlier = [attempt for attempt in record.log(run, hostname).attempts() if attempt < present]
        if earlier:
            found[hostname] = earlier[-1]
    if not found:
        raise NotFound(f"{', '.join(hostnames)}: there was no attempt before this one.")
    return found


def _follow(entry: Entry, names: Sequence[str], wanted: Wanted, write: writing.Write) -> None:
    follower = Follower(entry)
    hostnames: list[str] = []
    begun = False
    while True:
        seen = follower.look()
        job = seen.sight.view["job"]
        if job is not None:
            hostnames = chosen(entry.title, names, {name: task["container"] for name, task in job["tasks"].items()})
        came = [line for line in follower.lines() if line.hostname in hostnames]
        write(filter(wanted.takes, came) if begun else wanted.last(came))
        begun = begun or job is not None
        if over(seen):
            write(line for line in follower.rest() if line.hostname in hostnames and wanted.takes(line))
            return
        pause(_POLL_SECONDS)


def pause(duration: float) -> None:
    """Wait, but no longer than there is a reader.

    Raises:
        BrokenPipeError: what we print to has been closed.
    """
    waiting = select.poll()
    waiting.register(sys.stdout, 0)
    if any(event & select.POLLERR for _, event in waiting.poll(duration * 1000)):
        raise BrokenPipeError


def _since(text: str) -> float:
    if not text:
        return 0.0
    with suppress(ValueError):
        return time.time() - seconds(text)
    with suppress(ValueError):
        return datetime.datetime.fromisoformat(text).timestamp()
    raise typer.BadParameter(f"--since {text!r} is neither {DURATION_FORM}, nor a time such as 2026-11-21T04:12:07Z.")


def _pattern(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise typer.BadParameter(f"--grep {text!r} is no regular expression: {error}.") from None
