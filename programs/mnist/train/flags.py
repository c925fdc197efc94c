"""The command line of train.py."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Flags:
    """The command line, checked: which task this is, of which cluster, and what to train."""

    job_name: str
    task_index: int
    ps_hosts: list[str]
    worker_hosts: list[str]
    steps: int
    batch_size: int
    learning_rate: float
    hidden_units: int
    save_steps: int
    start_wait: int
    data_dir: Path | None
    train_dir: Path | None
    shuffle_labels: bool

    @property
    def task(self) -> str:
        return f"{self.job_name}-{self.task_index}"

    @property
    def is_chief(self) -> bool:
        """Whether this is worker 0, which makes the variables, saves them and evaluates."""
        return self.job_name == "worker" and self.task_index == 0


def hosts(text: str) -> list[str]:
    """`host:port` addresses, separated by commas."""
    addresses = text.split(",")
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"{address!r} is not host:port")
    return addresses


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def seconds(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return int(text)


def rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def folder_from(variable: str) -> Path | None:
    text = os.environ.get(variable)
    return Path(text) if text else None


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="train.py",
        description="MNIST on parameter servers and workers; start it once for every task.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--job_name", required=True, choices=["ps", "worker"], help="what this task is")
    add("--task_index", required=True, type=int, help="which of its job, from 0")
    add("--ps_hosts", required=True, type=hosts, help="all of job ps, as host:port,host:port")
    add("--worker_hosts", required=True, type=hosts, help="all of job worker, likewise")
    add("--steps", type=positive, default=1000, help="steps of all workers together")
    add("--batch_size", type=positive, default=64, help="digits in a step")
    add("--learning_rate", type=rate, default=0.004, help="of the Adam optimizer")
    add("--hidden_units", type=positive, default=128, help="width of the hidden layer")
    add("--save_steps", type=positive, default=50, help="steps from checkpoint to checkpoint")
    add(
        "--start_wait",
        type=seconds,
        default=120,
        help="how long worker 0 waits for the others; 0 if they may join at any time",
    )
    add(
        "--data_dir",
        type=Path,
        default=folder_from("TFDEPLOY_DATA_DIR"),
        help="folder with Keras' full mnist.npz; without it the 5,000 digits beside train.py",
    )
    add(
        "--train_dir",
        type=Path,
        default=folder_from("TFDEPLOY_TRAIN_DIR"),
        help="folder for checkpoints and the trained model; without it a temporary one",
    )
    add(
        "--shuffle_labels",
        action="store_true",
        help="train on labels in random order, which must leave nothing but guessing",
    )
    return made


def parse(argv: Sequence[str] | None = None) -> Flags:
    """The flags; a wrong one ends the program with a usage message and exit code 2."""
    made = parser()
    flags = Flags(**vars(made.parse_args(argv)))
    size = len(flags.ps_hosts if flags.job_name == "ps" else flags.worker_hosts)
    if not 0 <= flags.task_index < size:
        made.error(
            f"argument --task_index: {flags.task_index} given,"
            f" but --{flags.job_name}_hosts names {size} (0 to {size - 1})"
        )
    return flags
