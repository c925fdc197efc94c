"""`tfdeploy status`: machines and tasks."""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import registry
from ...agent.record.progress import Progress
from ...agent.record.terminal_text import safe
from ...backends.base import IDENTITY
from ...errors import UsageError
from ...registry import Entry
from ...report.events import stopped_steps
from ...report.progress import left_text, loss_text, rate_text, step_text
from ...report.summary import next_steps, summary
from ...report.tables import screen_text, wide_text
from ...units import moment, wrapped
from ..cluster_selection import ClusterQuery, label, select_clusters
from ..output import has_colours, print_json, print_message, print_result, print_styled, screen_width, sleep_while_read
from ..parser import Parser
from ..snapshot import Snapshot, take_snapshot

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

OUTPUTS = (
    *("state", "reason", "run", "decided", "tasks", "machines", "metrics", "endpoints", "train_dir", "artifacts"),
    *("is_uploading", "cost", "observed_at"),
)
"""The members of a report that `--json` prints."""

_POLL_SECONDS = 1.0
_QUIT_KEYS = (b"q", b"Q", b"\x03", b"\x1b")
_BAR_WIDTH = 12


def progress_lines(snapshot: Snapshot) -> list[str]:
    """The progress of each task with steps or losses in its log."""
    progress = snapshot.report.progress
    shown = {name: item for name, item in progress.items() if item.step is not None or item.loss is not None}
    width = max(map(len, shown), default=0)
    running = not snapshot.report.decided
    return [f"{name:<{width}}  {progress_line(item, running)}" for name, item in shown.items()]


def progress_line(progress: Progress, running: bool) -> str:
    """The progress of a task: `━━━━──── 1200/2000 60%  41.0 steps/s  20s left  loss 0.31 ▇▅▃▂▁`."""
    first = step_text(progress)
    if progress.part is not None and progress.goal:
        done = round(progress.part * _BAR_WIDTH)
        first = f"{'━' * done}{'─' * (_BAR_WIDTH - done)} {first} {progress.part:.0%}"
    speed = [rate_text(progress), left_text(progress)] if running else []
    return "  ".join(part for part in (first, *speed, loss_text(progress)) if part)


def watch_clusters(entries: Sequence[Entry]) -> None:
    """Show the clusters until their runs end or q is pressed: redrawn in a terminal, otherwise printed after each change."""
    from rich.console import Console

    screen = Console(highlight=False)
    printed, is_first = "", True
    with _live(screen) as (update, wait):
        while True:
            snapshots = [take_snapshot(registry.latest(entry)) for entry in entries]
            lines = _lines(snapshots)
            if update:
                update(_crop(lines, screen.size.height))
            else:
                printed = _print_change(snapshots, printed)
            ended = all(snapshot.is_finished for snapshot in snapshots)
            if ended or wait(_POLL_SECONDS):
                break
            is_first = False
    if not screen.is_terminal:
        lines = [line for snapshot in snapshots for line in progress_lines(snapshot)]
    if lines:
        print_styled("\n".join(lines).rstrip())
    if ended and is_first:
        print_message("This is the last state: the training has ended, so there is nothing to watch.")


def _print_change(snapshots: Sequence[Snapshot], printed: str) -> str:
    """Print the clusters if their states are not those that were printed; returns their states."""
    reports = [snapshot.report for snapshot in snapshots]
    states = str([[task["status"] for task in report.tasks] + [report.state] for report in reports])
    if states != printed:
        print_result("\n\n".join(cluster_text(snapshot) for snapshot in snapshots) + "\n")
    return states


def _lines(snapshots: Sequence[Snapshot]) -> list[str]:
    lines: list[str] = []
    for snapshot in snapshots:
        lines += [_title(snapshot.entry, [other.entry for other in snapshots])] if len(snapshots) > 1 else []
        lines += [*cluster_text(snapshot, is_watched=True).splitlines(), "", *progress_lines(snapshot), ""]
    return [safe(text) for text in lines]


def _crop(lines: Sequence[str], height: int) -> "Text":
    """As many lines as fit on the screen, the first and the last ones: more would scroll it."""
    from rich.text import Text

    room = height - 2
    half = room // 2
    visible = lines if len(lines) <= room else [*lines[: room - half - 1], "…", *lines[len(lines) - half :]]
    status = f"{time.strftime('%H:%M:%S')}  Press q to quit. The training continues."
    text = Text.from_ansi("\n".join([*visible, status]))
    text.no_wrap, text.overflow = True, "crop"
    return text


_Update = Callable[["Text"], None]
_Wait = Callable[[float], bool | None]


@contextmanager
def _live(screen: "Console") -> Iterator[tuple[_Update | None, _Wait]]:
    """A function that redraws the screen, None if it is no terminal; and one that waits for so many seconds, and returns whether the
    quit key was pressed meanwhile, if stdin is a terminal."""
    if not screen.is_terminal:
        yield None, sleep_while_read
        return
    import termios  # most calls wait for no key
    import tty

    from rich.live import Live
    from rich.text import Text

    keys = [sys.stdin] if sys.stdin.isatty() else []

    def wait(seconds: float) -> bool:
        ready, _, _ = select.select(keys, [], [], seconds)
        return bool(ready) and os.read(sys.stdin.fileno(), 1) in _QUIT_KEYS

    attributes = termios.tcgetattr(sys.stdin) if keys else None
    try:
        if keys:
            tty.setcbreak(sys.stdin)
        with Live(console=screen, auto_refresh=False, vertical_overflow="crop") as live:
            yield partial(live.update, refresh=True), wait
            live.update(Text(""), refresh=True)
    finally:
        if attributes is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, attributes)


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    text = "Update the tables and the training's progress until the run ends or q is pressed."
    parser.add_argument("--watch", "-w", action="store_true", help=text)


def status(query: ClusterQuery, watch: bool = False) -> None:
    """Show tasks, machines, and how good and far the run is.

    `tfdeploy ps` and `tfdeploy show` are the same command. With -o wide it also shows containers (on `local` processes) and addresses.
    With --watch, it exits when all runs have ended; without a terminal, it prints each change.
    """
    if watch:
        if query.as_json:
            raise UsageError("--watch has no JSON output. Use `tfdeploy events --follow --json`.")
        watch_clusters(select_clusters(query))
        return
    snapshots = [take_snapshot(entry) for entry in select_clusters(query)]
    if query.as_json:
        print_json([to_dict(snapshot) for snapshot in snapshots])
        return
    for snapshot in snapshots:
        if len(snapshots) > 1:
            print_result(_title(snapshot.entry, [other.entry for other in snapshots]))
        print_styled(cluster_text(snapshot, query.wide))


def _title(entry: Entry, entries: Sequence[Entry]) -> str:
    return f"{entry.cluster['project']}/{entry.cluster['stack']}/{label(entry, entries)}"


def cluster_text(snapshot: Snapshot, wide: bool = False, is_watched: bool = False) -> str:
    """A cluster as text in the width of the terminal, or with all columns in full: its tables, and below them what people ask first.
    While it is watched, there is nothing more to type."""
    report, width = snapshot.report, screen_width(wide)
    if snapshot.entry.ended and "://" not in report.train_dir and not Path(report.train_dir).exists():
        report = replace(report, train_dir="")
    if wide:
        tables = wide_text(report.machines, report.tasks, report.endpoints, time.time(), has_colours())
    else:
        tables = screen_text(report.machines, report.tasks, width, time.time(), has_colours())
    lines = [summary(report, str(Path.home()), width)]
    stopped = "" if report.decided else stopped_steps(snapshot.events)
    if stopped:
        lines += wrapped(stopped, width)
    if snapshot.entry.ended:
        at = moment(snapshot.entry.ended)
        lines.append(f"The cluster was destroyed at {at}; this is its last record. `pulumi up` creates it again.")
    elif not is_watched:
        lines += wrapped(next_steps(report, snapshot.entry.expected.serve, in_status=True), width)
    return f"{tables}\n\n" + "\n".join(safe(line, False) for line in "\n".join(lines).split("\n"))


def to_dict(snapshot: Snapshot) -> dict[str, Any]:
    """A cluster as JSON: its identity and the outputs that are public."""
    outputs = {name: getattr(snapshot.report, name) for name in OUTPUTS}
    return {**{key: value for key, value in snapshot.entry.cluster.items() if key in IDENTITY}, **outputs}
