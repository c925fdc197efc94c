"""The handwritten digits: read from file, dealt out in batches."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

BUNDLED = Path(__file__).with_name("digits.npz")

Bytes: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True)
class Digits:
    """Images of 28 by 28 bytes and the digit that each one shows; `test` is held out."""

    x_train: Bytes
    y_train: Bytes
    x_test: Bytes
    y_test: Bytes


def load(data_dir: Path | None) -> Digits:
    """The full MNIST from `data_dir`/mnist.npz; without a `data_dir`, the bundled part of it."""
    path = data_dir / "mnist.npz" if data_dir else BUNDLED
    if not path.is_file():
        raise SystemExit(
            f"train.py: --data_dir {data_dir} holds no mnist.npz; put Keras' file of that name"
            " there, or leave --data_dir out to train on the bundled digits"
        )
    with np.load(path) as arrays:
        return Digits(**{key: arrays[key] for key in ("x_train", "y_train", "x_test", "y_test")})


def with_shuffled_labels(digits: Digits) -> Digits:
    """The same for every worker, so that all of them learn the same nonsense."""
    return replace(digits, y_train=np.random.default_rng(0).permutation(digits.y_train))


def batches(digits: Digits, size: int, seed: int) -> Iterator[tuple[Bytes, Bytes]]:
    """Training images and labels without end; each round deals all of them, in a new order."""
    random = np.random.default_rng(seed)
    count = len(digits.y_train)
    while True:
        order = random.permutation(count)
        for start in range(0, count, size):
            chosen = order[start : start + size]
            yield digits.x_train[chosen], digits.y_train[chosen]
