"""What the benchmarks read of the MNIST program's output."""

import pytest

from bench import mnist


def lines(*steps: tuple[float, int]) -> str:
    return "".join(f"{at} step {step} loss: 0.5\n" for at, step in steps)


def test_the_rate_is_that_of_the_latest_steps() -> None:
    workers = [lines((0.9, 90), (1.0, 100), (3.0, 300)), lines((2.0, 200), (3.5, 110), (9.0, 900))]
    assert mnist.rate(workers, 1.0, 4.0) == pytest.approx(100.0)
