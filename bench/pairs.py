"""Two things measured by turns, so that a change of the machine's load affects both."""

from collections.abc import Callable


def by_turns(
    pairs: int, what: str, ours: Callable[[], float], peer: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """A number of pairs of measurements, ours first; each is printed at once."""
    mine: list[float] = []
    other: list[float] = []
    for number in range(1, pairs + 1):
        mine.append(ours())
        other.append(peer())
        log(f"{what} {number}/{pairs}: ours {mine[-1]:.3f}, peer {other[-1]:.3f}, ratio {mine[-1] / other[-1]:.3f}")
    return mine, other


def log(text: str) -> None:
    """Print the progress."""
    print(f"  {text}", flush=True)
