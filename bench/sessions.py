"""`python -m bench.sessions`: what slows a training on `local`: a session for each task, the launchers, or `up` that waits.

With `kernel.sched_autogroup_enabled` Linux schedules each session as one group (design/speed.md). Several trainings exist at
once; each variant continues the processes of one for a turn, and its steps a second are compared with those of the first
variant in the same round. On an idle machine it takes six minutes; the variant without groups needs root.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil

from tfdeploy.backends.local.supervisor import marked

from . import ending, mnist
from .baselines.by_hand import ByHand
from .computer import machine
from .engine import CLUSTER, UP, project, workplace
from .halting import Handle, halt, of_processes, release
from .observed import Cluster, output, task_processes
from .pairs import log
from .processes import BenchError, family
from .steps import HOSTNAMES, Training
from .table import interval

AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")

_SETTLE = 0.5
_ARRIVAL = 3.0


@dataclass(frozen=True)
class Turn:
    """When it was measured, and the processor time that the tasks took meanwhile."""

    begun: float
    ended: float
    busy: float


@dataclass(frozen=True)
class Variant:
    """One variant of a training."""

    name: str
    training: Training
    handles: Sequence[Handle]
    """What runs in its turns; the rest of its training is stopped."""
    tasks: Sequence[psutil.Process]
    turns: list[Turn] = field(default_factory=list)

    def turn(self, seconds: float) -> None:
        """Continue it for this time."""
        release(self.handles)
        time.sleep(_SETTLE)
        begun, before = time.monotonic(), _busy(self.tasks)
        time.sleep(seconds)
        self.turns.append(Turn(begun, time.monotonic(), _busy(self.tasks) - before))
        halt(self.handles)
        self.training.check()

    def rates(self) -> list[float]:
        """Steps a second in each turn; 0 where the program printed too few."""
        printed = self.training.read()
        return [_rate(printed, turn) for turn in self.turns]

    def cores(self) -> float:
        """How many cores its tasks used, the median of the turns."""
        return median(turn.busy / (turn.ended - turn.begun) for turn in self.turns)


def _busy(processes: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _rate(outputs: Sequence[str], turn: Turn) -> float:
    try:
        return mnist.rate(outputs, turn.begun, turn.ended)
    except BenchError:
        return 0.0


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="turns of each variant (9)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a turn (3)")
    options = parser.parse_args()
    ending.watch()
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}; sched_autogroup_enabled {_autogroup()}", flush=True)
    load = []
    with ExitStack() as stack:
        variants = _variants(stack, stack.enter_context(workplace()).folder)
        for number in range(1, options.rounds + 1):
            for variant in random.sample(variants, len(variants)):
                variant.turn(options.seconds)
            load.append(os.getloadavg()[0])
            log(f"round {number}/{options.rounds}, load {load[-1]:.1f}")
        for variant in variants:
            tasks = of_processes(variant.tasks)
            release([handle for handle in variant.training.handles if handle not in tasks])
        time.sleep(_ARRIVAL)  # what a halted launcher has not sent yet
        lines = list(_lines(variants))
    print(*lines, f"load {min(load):.1f} to {max(load):.1f}", sep="\n")
    return 0


def _variants(stack: ExitStack, folder: Path) -> list[Variant]:
    """All of them, each training warm and halted. The first is what the others are compared with."""
    variants = [
        _by_hand(stack, folder / "hand", "by hand, one session", False),
        _by_hand(stack, folder / "again", "the same once more", False),
        _by_hand(stack, folder / "sessions", "by hand, a session each", True),
        *_cluster(stack, "local"),
    ]
    if os.access(AUTOGROUP, os.W_OK):
        with _no_autogroup():
            variants += _cluster(stack, "local, started without autogroup")
    return variants


def _by_hand(stack: ExitStack, folder: Path, name: str, sessions: bool) -> Variant:
    code = folder / "code"
    mnist.lay_out(code)
    command = [*mnist.command(mnist.ENDLESS), f"--train_dir={folder / 'train'}"]
    started = stack.enter_context(ByHand(code, folder / "logs", mnist.WORKERS, command, sessions))
    training = Training(lambda: [started.log(name).read_text() for name in HOSTNAMES], [started])
    training.warm_up()
    tasks = [psutil.Process(pid) for pid in started.pids]
    stack.enter_context(training.stopped(of_processes(tasks)))
    log(f"{name}: trains")
    return Variant(name, training, training.handles, tasks)


def _cluster(stack: ExitStack, name: str) -> list[Variant]:
    """A cluster that trains while `up` waits: all of it, without `up`, its tasks alone."""
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": mnist.WORKERS,
        "tfdeploy:command": ["python", *mnist.command(mnist.ENDLESS)],
        "tfdeploy:wait": "1h",
    }
    made = stack.enter_context(project(stack.enter_context(workplace()), CLUSTER, "ours", config))
    mnist.lay_out(made.code)
    call = made.start(*UP)
    training = Training(lambda: [output(made.home, name).decode() for name in HOSTNAMES], [Cluster(made.home), call])
    training.warm_up()
    tasks = [process for process in task_processes(made.home) if "stamped.py" in process.cmdline()]
    cluster = of_processes(marked(made.home))
    everything = [*of_processes(family(call.pid)), *cluster]
    stack.enter_context(training.stopped(everything))
    log(f"{name}: trains, {len(tasks)} tasks among {len(everything)} processes")
    return [
        Variant(f"{name}, while `up` waits", training, everything, tasks),
        Variant(f"{name}, `up` halted", training, cluster, tasks),
        Variant(f"{name}, only its tasks run", training, of_processes(tasks), tasks),
    ]


def _autogroup() -> str:
    with suppress(OSError):
        return AUTOGROUP.read_text().strip()
    return "unknown"


@contextmanager
def _no_autogroup() -> Iterator[None]:
    """New sessions inside are not scheduled as groups; existing threads are not affected."""
    before = AUTOGROUP.read_text()
    try:
        AUTOGROUP.write_text("0")
        yield
    finally:
        with ending.undisturbed():
            AUTOGROUP.write_text(before)


def _lines(variants: Sequence[Variant]) -> Iterator[str]:
    """The table: for each variant the median of the ratios to the first, and the interval of that median."""
    yield "| variant | steps/s | cores | ms of processor a step | ratio to the first | 95 % interval | rounds |"
    yield "|---|---|---|---|---|---|---|"
    base = variants[0].rates()
    for variant in variants:
        rates, cores = variant.rates(), variant.cores()
        ratios = sorted(mine / other for mine, other in zip(rates, base, strict=True) if mine and other)
        if not ratios:
            raise BenchError("the program printed too few steps: increase --seconds")
        low, high = interval(ratios)
        speed = median(filter(None, rates))
        cells = (f"{speed:.0f}", f"{cores:.2f}", f"{1000 * cores / speed:.2f}", f"{median(ratios):.3f}")
        yield f"| {variant.name} | {' | '.join(cells)} | {low:.3f} to {high:.3f} | {len(ratios)} |"


if __name__ == "__main__":
    sys.exit(main())
