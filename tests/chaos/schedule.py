"""The random part of a round: which faults, when, on what. Pure, and the same for the same seed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

MOST_FAULTS = 4
WORKERS = 2
COMMANDS = ("up", "refresh", "destroy", "restart --lost")
"""Commands during which a fault may happen."""

CLOCK_FAULTS = ("clock_step", "controller_away", "cut_machine", "cut_network", "suspend_all", "suspend_engine")
"""Faults that need a clock that can be stepped."""

COMMAND_SECONDS = 3.0
"""About what a command takes; a fault during it begins at a random moment before."""


@dataclass(frozen=True)
class Kind:
    """What a table of faults says of one, for the draw."""

    weight: int = 1
    tasks: bool = False
    """It happens to one task."""
    alone: bool = True
    """It may happen while no command runs."""
    during: bool = True
    """It may happen during a command."""
    touches: bool = True
    """It acts on programs, their launchers, disks or machines; otherwise all of them train as if nothing had happened."""


@dataclass(frozen=True)
class Step:
    """One fault, with everything that was drawn for it."""

    fault: str
    at: float
    """The part of the training that is done then, from 0 to 1."""
    task: str = ""
    during: str = ""
    """The command that is started just before; empty for none."""
    delay: float = 0.0
    """Seconds from the start of that command to the fault."""
    seconds: float = 0.0
    """How long a fault lasts that ends by itself."""
    amount: float = 0.0
    """A number from 0 to 1 that the fault interprets: a place, a size, a direction."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Round:
    """One training with its faults. It depends on nothing but seed and number, so that one round can be replayed alone."""

    seed: int
    number: int
    steps: tuple[Step, ...]

    @property
    def clock_steps(self) -> bool:
        """Whether a clock is stepped: its processes are then started with a clock that can be."""
        return any(step.fault in CLOCK_FAULTS for step in self.steps)


def draw(seed: int, number: int, kinds: Mapping[str, Kind]) -> Round:
    """The round of this number."""
    random = Random(f"{seed}/{number}")
    names = sorted(kinds)
    chosen = random.choices(names, [kinds[name].weight for name in names], k=random.randint(1, MOST_FAULTS))
    moments = sorted(round(random.random(), 3) for _ in chosen)
    steps = tuple(_step(random, name, kinds[name], at) for name, at in zip(chosen, moments, strict=True))
    return Round(seed, number, steps)


def _step(random: Random, name: str, kind: Kind, at: float) -> Step:
    # Each number is drawn whether it is used or not: a fault that learns to use one changes no other draw.
    task = random.choice(["ps-0", *(f"worker-{index}" for index in range(WORKERS))])
    command = random.choice(COMMANDS)
    delay, seconds, amount = (round(random.random(), 3) for _ in range(3))
    chance = random.random()
    in_command = chance < 0.3 if kind.alone and kind.during else kind.during
    return Step(
        name,
        at,
        task if kind.tasks else "",
        command if in_command else "",
        round(delay * COMMAND_SECONDS, 3) if in_command else 0.0,
        round(0.2 + 3 * seconds, 3),
        amount,
    )
