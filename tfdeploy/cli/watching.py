"""`tfdeploy show --watch`: both tables and the training's progress, drawn anew as they change."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..progress import Progress, Training, goal, sparkline
from ..quantities import text_of_seconds
from ..registry import Entry
from .asking import console, say
from .following import Follower
from .logs import pause
from .looking import Seen, over
from .terminal import safe

_SECONDS = 1.0
_QUIT = (b"q", b"Q", b"\x03", b"\x1b")
_BAR, _SPARKS = 12, 16


@dataclass
class Watched:
    """One cluster that is watched, and what its tasks have said so far."""

    entry: Entry
    follower: Follower = field(init=False)
    trainings: dict[str, Training] = field(default_factory=dict)
    run: str = ""

    def __post_init__(self) -> None:
        self.follower = Follower(self.entry)

    def look(self) -> Seen:
        """One look; the lines that came since the last are read."""
        seen = self.follower.look()
        if seen.report.run != self.run:
            self.run, self.trainings = seen.report.run, {}
        commands = {row["hostname"]: row["command"] for row in seen.report.tasks}
        for line in self.follower.lines():
            if line.hostname not in self.trainings:
                self.trainings[line.hostname] = Training(goal(commands.get(line.hostname, "")))
            self.trainings[line.hostname].take([(line.at, line.text)])
        return seen

    def told(self, seen: Seen) -> list[str]:
        """A line for each task whose lines tell of training; the one that people look at first."""
        told = {name: one.progress for name, one in self.trainings.items()}
        names = [name for name, one in told.items() if one.step is not None or one.loss is not None]
        names.sort(key=lambda name: (name.partition("-")[0] != "chief", name.partition("-")[0], _index(name)))
        width = max([len(name) for name in names], default=0)
        return [f"{name:<{width}}  {line(told[name], not seen.report.decided)}" for name in names]


def line(now: Progress, running: bool) -> str:
    """One task's progress: `━━━━──── 1200/2000 60%  41.0 steps/s  20s left  loss 0.31 ▇▅▃▂▁`."""
    parts = []
    if now.part is not None and now.goal:
        done = round(now.part * _BAR)
        parts.append(f"{'━' * done}{'─' * (_BAR - done)} {now.step:g}/{now.goal:g} {now.part:.0%}")
    elif now.step is not None:
        parts.append(f"step {now.step:.0f}")
    if now.rate is not None and running:
        parts.append(f"{now.rate:.1f} steps/s")
        if now.left:
            parts.append(f"{text_of_seconds(now.left)} left")
    if now.loss is not None:
        parts.append(f"loss {now.loss:.4g} {sparkline(now.losses, _SPARKS)}".rstrip())
    return "  ".join(parts)


def watch(entries: Sequence[Entry], shown: Callable[[Seen], str]) -> None:
    """Draw the clusters until their jobs are over, or somebody presses q; where there is no terminal, say each change.

    `shown` is how one look reads.
    """
    watched = [Watched(entry) for entry in entries]
    if console().is_terminal:
        _draw(watched, shown)
    else:
        _say(watched, shown)


def _draw(watched: Sequence[Watched], shown: Callable[[Seen], str]) -> None:
    screen = console()
    with _keys() as pressed, Live(console=screen, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            seen = [one.look() for one in watched]
            lines = _lines(watched, seen, shown)
            live.update(_cut(lines, screen), refresh=True)
            if all(map(over, seen)) or pressed(_SECONDS):
                break
        live.update(Text(""), refresh=True)
    say("\n".join(lines).rstrip())


def _say(watched: Sequence[Watched], shown: Callable[[Seen], str]) -> None:
    before = ""
    while True:
        seen = [one.look() for one in watched]
        words = str([[task["status"] for task in one.report.tasks] + [one.report.state] for one in seen])
        if words != before:
            say("\n\n".join(shown(one) for one in seen) + "\n")
            before = words
        if all(map(over, seen)):
            for one, look in zip(watched, seen, strict=True):
                for told in one.told(look):
                    say(told)
            return
        pause(_SECONDS)


def _lines(watched: Sequence[Watched], seen: Sequence[Seen], shown: Callable[[Seen], str]) -> list[str]:
    lines: list[str] = []
    for one, look in zip(watched, seen, strict=True):
        lines += [one.entry.title] if len(watched) > 1 else []
        lines += [*shown(look).splitlines(), "", *one.told(look), ""]
    return [safe(text, False) for text in lines]


def _cut(lines: Sequence[str], screen: Console) -> Text:
    """As much as the screen holds, so that drawing anew never scrolls."""
    room = screen.size.height - 2
    kept = lines if len(lines) <= room else [*lines[: room - 1], "…"]
    text = "\n".join([*kept, f"{time.strftime('%H:%M:%S')}  q ends this; the training goes on"])
    return Text(text, no_wrap=True, overflow="crop")


@contextmanager
def _keys() -> Iterator["_Pressed"]:
    """Keys are heard at once and not shown, where somebody can press any."""
    if not sys.stdin.isatty():
        yield _Pressed(None)
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield _Pressed(sys.stdin.fileno())
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


class _Pressed:
    """Whether the key that ends it is pressed within so many seconds."""

    def __init__(self, keys: int | None) -> None:
        self._keys = keys

    def __call__(self, seconds: float) -> bool:
        if self._keys is None:
            time.sleep(seconds)
            return False
        ready, _, _ = select.select([self._keys], [], [], seconds)
        return bool(ready) and os.read(self._keys, 1) in _QUIT


def _index(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0
