"""`tfdeploy logs`: what tasks print."""

import datetime
import re
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...agent.model.run_state import RunState
from ...agent.record.record import Record
from ...agent.record.terminal_text import plain
from ...backends.task_access import no_task
from ...errors import NotFound, UsageError
from ...registry import Entry
from ...report.program_problems import is_noise
from ...units import DURATION_FORM, seconds
from ..cluster_selection import ClusterQuery, select_cluster
from ..output import Writer, line_writer, print_message, sleep_while_read
from ..parser import Parser, whole_number
from ..snapshot import Follower, LogLine, read_lines, records, refuse_endless_wait, take_snapshot

_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class LineFilter:
    """Which lines are shown."""

    since: float = 0.0
    pattern: re.Pattern[str] | None = None
    only_stderr: bool = False
    attempts: Mapping[str, int] = field(default_factory=dict)
    """Hostname to the only attempt that is shown; empty for all attempts of all tasks."""
    tail: int | None = None
    """How many lines of each task, from the end; None for all."""
    without_noise: bool = False
    """Without the lines that TensorFlow prints at each start."""

    def matches(self, line: LogLine) -> bool:
        """Whether a line is shown, apart from `tail`."""
        return (
            line.at >= self.since
            and (not self.only_stderr or line.pipe == "stderr")
            and (self.pattern is None or _contains(plain(line.text), self.pattern))
            and (not self.attempts or self.attempts.get(line.hostname) == line.attempt)
            and not (self.without_noise and is_noise(line.text))
        )

    def select(self, lines: Iterable[LogLine]) -> Iterable[LogLine]:
        """The lines that are shown."""
        if self.tail is None:
            return filter(self.matches, lines)
        tails: dict[str, deque[LogLine]] = {}
        for line in filter(self.matches, lines):
            tails.setdefault(line.hostname, deque(maxlen=self.tail)).append(line)
        return sorted((line for tail in tails.values() for line in tail), key=lambda line: line.at)


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    names = "Tasks, such as worker-0, or all tasks of a job, such as worker. Default: all tasks."
    parser.add_argument("names", nargs="*", metavar="HOSTNAME|JOB|CONTAINER", help=names)
    parser.add_argument("--follow", "-f", action="store_true", help="Print new lines until the run ends.")
    since = "Only lines since then, such as 10m or 2026-11-21T04:12."
    parser.add_argument("--since", default="", metavar="TIME", help=since)
    grep = "Only lines that match this regular expression."
    parser.add_argument("--grep", default="", metavar="PATTERN", help=grep)
    parser.add_argument("--stderr", action="store_true", help="Only lines of stderr.")
    parser.add_argument("--previous", "-p", action="store_true", help="Lines of the previous attempt.")
    tail = "Only the last lines of each task."
    parser.add_argument("--tail", "-n", type=whole_number(least=0), metavar="N", help=tail)
    save = "Write to this file. The log of a single task is written without prefixes."
    parser.add_argument("--save", type=Path, metavar="FILE", help=save)
    run = "Id of an earlier run. Default: the current run."
    parser.add_argument("--run", default="", help=run)
    parser.add_argument("--timestamps", action="store_true", help="Begin each line with its time (UTC).")
    quiet = "Without the lines that TensorFlow prints at each start."
    parser.add_argument("--quiet", "-q", action="store_true", help=quiet)


def logs(
    query: ClusterQuery,
    names: Sequence[str] = (),
    follow: bool = False,
    since: str = "",
    grep: str = "",
    stderr: bool = False,
    previous: bool = False,
    tail: int | None = None,
    save: Path | None = None,
    run: str = "",
    timestamps: bool = False,
    quiet: bool = False,
) -> None:
    """Show the log lines of tasks, oldest first.

    This works during the first `pulumi up` and after `pulumi destroy`. With --json, the output is one list; with --json --follow, one
    document per line.
    """
    if follow and (previous or run):
        raise UsageError("--follow shows the current run; it cannot be used with --previous or --run.")
    entry = select_cluster(query)
    record, run, hostnames = find_run(entry, run, names)
    attempts = _previous_attempts(record, run, hostnames) if previous else {}
    line_filter = LineFilter(_since(since), _pattern(grep), stderr, attempts, tail, quiet)
    with line_writer(query.as_json, follow, save, hostnames, timestamps) as write:
        if follow:
            _follow(entry, names, line_filter, write)
        else:
            write(line_filter.select(read_lines(record, run, hostnames) if run else ()))
    if not follow and not run:
        print_message(f"{entry.title}: no run was submitted yet. `tfdeploy logs --follow` waits for it.")


def find_run(entry: Entry, run: str, names: Sequence[str]) -> tuple[Record, str, list[str]]:
    """The record that has the run, the run's id, and the selected tasks. The id is empty if no run was submitted yet.

    Raises:
        NotFound: there is no such run, or no such task.
    """
    snapshot = take_snapshot(entry)
    run_id = run or (snapshot.run_state.spec.id if snapshot.run_state else "")
    if not run_id:
        return Record(Path(snapshot.observed.record_folder)), "", [task["hostname"] for task in snapshot.report.tasks]
    stored = records(entry, snapshot.observed.record_folder)
    for record in stored:
        run_state = record.load(run_id)
        if run_state is not None:
            return record, run_id, select_tasks(entry.title, names, _containers(record, run_state))
    run_ids = ", ".join(dict.fromkeys(name for record in stored for name in record.runs())) or "none"
    raise NotFound(f"{entry.title} has no run {run_id!r}. Its runs are: {run_ids}.")


def _containers(record: Record, run: RunState) -> dict[str, str]:
    """The tasks that the run has or ever had, and their containers; empty for a task that was removed."""
    tasks = run.tasks
    return {name: tasks[name].report.container if name in tasks else "" for name in record.hostnames(run)}


def select_tasks(title: str, names: Sequence[str], containers: Mapping[str, str]) -> list[str]:
    """The hostnames of the named tasks, or of all tasks if there are no names.

    A name is a hostname (`worker-0`, `worker:0`), a job, or the beginning of a container's id.

    Raises:
        NotFound: a name matches no task.
    """
    selected: list[str] = []
    for name in names:
        normal = name.replace(":", "-").replace("_", "-")
        matches = [hostname for hostname in containers if normal in (hostname, hostname.rpartition("-")[0])]
        matches = matches or [hostname for hostname, id_ in containers.items() if id_ and id_.startswith(name)]
        if not matches:
            raise no_task(title, name, containers)
        selected += matches
    return [hostname for hostname in containers if hostname in selected] if names else list(containers)


def _previous_attempts(record: Record, run: str, hostnames: Sequence[str]) -> dict[str, int]:
    """Hostname to the attempt before the current one.

    Raises:
        NotFound: none of these tasks was restarted.
    """
    state = record.load(run) if run else None
    current = {**state.removed_attempts, **{name: task.attempt for name, task in state.tasks.items()}} if state else {}
    attempts = {}
    for hostname in [name for name in hostnames if name in current]:
        earlier = [attempt for attempt in record.log(run, hostname).attempts() if attempt < current[hostname]]
        if earlier:
            attempts[hostname] = earlier[-1]
    if not attempts:
        raise NotFound(f"{', '.join(hostnames)}: there is no previous attempt.")
    return attempts


def _follow(entry: Entry, names: Sequence[str], line_filter: LineFilter, write: Writer) -> None:
    follower = Follower(entry)
    hostnames: list[str] = []
    started = False
    while True:
        snapshot = follower.take_snapshot()
        if snapshot.run_state is not None:
            record = Record(Path(snapshot.observed.record_folder))
            hostnames = select_tasks(entry.title, names, _containers(record, snapshot.run_state))
        lines = [line for line in follower.lines() if line.hostname in hostnames]
        write(filter(line_filter.matches, lines) if started else line_filter.select(lines))
        started = started or snapshot.run_state is not None
        if snapshot.is_finished:
            rest = [line for line in follower.unfinished_lines() if line.hostname in hostnames]
            write(filter(line_filter.matches, rest))
            return
        refuse_endless_wait(snapshot)
        sleep_while_read(_POLL_SECONDS)


def _contains(text: str, pattern: re.Pattern[str]) -> bool:
    from ...agent.record.pattern_process import PATTERN_SECONDS, TooSlow, limited  # takes long to load

    try:
        with limited():
            return pattern.search(text) is not None
    except TooSlow:
        wrong = f"--grep {pattern.pattern!r} takes more than {PATTERN_SECONDS:g} s for one line"
        raise UsageError(f"{wrong}. Use a simpler pattern, without a repetition in a repetition.") from None


def _since(text: str) -> float:
    if not text:
        return 0.0
    with suppress(ValueError):
        return time.time() - seconds(text)
    with suppress(ValueError):
        return datetime.datetime.fromisoformat(text).timestamp()
    raise UsageError(f"--since {text!r} is not valid. Use {DURATION_FORM}, or a time such as 2026-11-21T04:12:07Z.")


def _pattern(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise UsageError(f"--grep {text!r} is not a valid regular expression: {error}.") from None
