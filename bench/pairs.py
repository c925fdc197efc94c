"""Two things measured by turns, so that a change of the machine's mood meets both."""

from collections.abc import Callable


def by_turns(
    pairs: int, what: str, ours: Callable[[], float], peer: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """So many pairs of measurements, ours first; each is told as it comes."""
    mine: list[float] = []
    other: list[float] = []
    for number in range(1, pairs + 1):
        mine.append(ours())
        other.append(peer())
        say(f"{what} {number}/{pairs}: ours {mine[-1]:.3f}, peer {other[-1]:.3f}, ratio {mine[-1] / other[-1]:.3f}")
    return mine, other


def say(text: str) -> None:
    """Tell how it goes."""
    print(f"  {text}", flush=True)
