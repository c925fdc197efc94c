"""MNIST on Kubernetes by tfdeploy, against the same image and program as a TFJob of Kubeflow's operator, in one cluster, by turns."""

import signal
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from statistics import median

from . import mnist
from .engine import workplace
from .on_kubernetes import Ours, Peer, Training, kubernetes, label
from .pairs import log
from .processes import BenchError, Watched, until
from .table import Row, number, ratio

_TURNS = 5
_STEPS = 500
_TARGETS = (1.3, 1)
"""For a worker that is killed for the first time, and again: the back-off of a kubelet doubles."""

_SILENT_TARGET = 1

_SECONDS = 180.0
_GRACE = 10.0
_CHIEF, _WORKER = "worker-0", "worker-1"
_WHERE = "on Kubernetes, 1 ps + 2 workers, against a TFJob"


@dataclass(frozen=True)
class Whole:
    """A training from its beginning to its end."""

    first_step: float
    done: float
    left: int
    """Programs that still run some seconds later."""
    readable: float
    """Of the chief's lines, in per cent, when the pods are deleted."""


@dataclass(frozen=True)
class Faults:
    """A training whose worker is killed, several times, and then lost with its node."""

    killed: tuple[float, ...]
    silent: float
    """The next time, while API server, controller manager and scheduler do not run."""
    lost: float
    has_failed: bool
    """Whether the loss has ended the training; else the worker had a session again after `lost` seconds."""


def run() -> list[Row]:
    """All rows from the same trainings."""
    with workplace() as place, kubernetes(place) as kube:
        wholes, faults = [], []
        for turn in range(1, _TURNS + 1):
            with ExitStack() as stack:
                ours = _whole(Ours(stack, place, kube, f"ours-{turn}", _STEPS, "10m"))
            with ExitStack() as stack:
                peer = _whole(Peer(stack, place, kube, f"tfjob-{turn}", _STEPS))
            wholes.append((ours, peer))
            log(f"training {turn}/{_TURNS}: ours {ours}, peer {peer}")
        for turn in range(1, _TURNS + 1):
            with ExitStack() as stack:
                mine = _faults(Ours(stack, place, kube, f"ours-lost-{turn}", mnist.ENDLESS, "0"))
            with ExitStack() as stack:
                other = _faults(Peer(stack, place, kube, f"tfjob-lost-{turn}", mnist.ENDLESS))
            faults.append((mine, other))
            log(f"faults {turn}/{_TURNS}: ours {mine}, peer {other}")
    return [*rows_of_wholes(wholes), *rows_of_faults(faults)]


def _whole(training: Training) -> Whole:
    begun = time.monotonic()
    training.begin()
    first = until(lambda: training.pods.step_after("", begun), "a first training step", training)
    training.until_done()
    done = time.monotonic()
    with suppress(BenchError):
        until(lambda: not training.pods.programs(), "the end of all programs", seconds=_GRACE)
    left = len(training.pods.programs())
    steps = len(mnist.steps([training.pods.printed(_CHIEF)]))
    training.delete()
    readable = 100.0 * len(mnist.steps([training.logs(_CHIEF)])) / steps
    return Whole(first - begun, done - begun, left, readable)


def _faults(training: Training) -> Faults:
    training.begin()
    _trains(training, 0.0, training)
    killed = tuple(_killed(training, training) for _ in _TARGETS)
    node, kube = training.pods.node_of(_WORKER), training.pods.kube
    with kube.without_api():
        silent = _killed(training)
    at = time.monotonic()
    node.kill()
    try:
        node.wait_lost()
        kube.api.delete(node.path)  # as the controller of a cloud does
        ended = until(
            lambda: training.pods.joined_after(_WORKER, at) or (time.monotonic() if training.has_failed() else None),
            "the lost worker's session, or the end of the training",
            seconds=_SECONDS,
        )
        return Faults(killed, silent, ended - at, training.has_failed())
    finally:
        kube.start_node(node)
        until(lambda: _is_registered(training, node.name), f"{node.name} registers again")
        label(kube, node)
        node.wait_ready()


def _is_registered(training: Training, name: str) -> bool:
    return any(item["metadata"]["name"] == name for item in training.pods.kube.api.items("/api/v1/nodes"))


def _killed(training: Training, *watched: Watched) -> float:
    """Seconds from the sudden end of a worker's program to its next step."""
    (process,) = training.pods.programs(_WORKER)
    at = time.monotonic()
    process.send_signal(signal.SIGKILL)
    return _trains(training, at, *watched) - at


def _trains(training: Training, after: float, *watched: Watched) -> float:
    return until(lambda: training.pods.step_after(_WORKER, after), f"a step of {_WORKER}", *watched, seconds=_SECONDS)


def rows_of_wholes(pairs: list[tuple[Whole, Whole]]) -> list[Row]:
    ours, peers = [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def between(measure: str, name: str) -> Row:
        mine, other = ([getattr(item, name) for item in items] for items in (ours, peers))
        return ratio(f"{measure} {_WHERE}", mine, other, None)

    def beside(measure: str, name: str, unit: str, target: float, at_least: bool) -> Row:
        mine, other = ([float(getattr(item, name)) for item in items] for items in (ours, peers))
        worst = min(mine) if at_least else max(mine)
        shown, peer = (f"{number(median(values))}{unit}" for values in (mine, other))
        return Row(f"{measure} {_WHERE}", shown, peer, mine, worst, target, at_least, unit)

    return [
        between("`pulumi up` or `kubectl apply` to the first training step", "first_step"),
        between(f"`pulumi up` or `kubectl apply` to the end of {_STEPS} steps", "done"),
        beside(f"programs that run {_GRACE:g} s after the end", "left", "", 0, at_least=False),
        beside("a worker's lines that can be read when the pods are deleted", "readable", " %", 100, at_least=True),
    ]


def rows_of_faults(pairs: list[tuple[Faults, Faults]]) -> list[Row]:
    ours, peers = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rows = [
        ratio(
            f"a worker killed by SIGKILL, time {kill + 1}, to its next step {_WHERE}",
            [item.killed[kill] for item in ours],
            [item.killed[kill] for item in peers],
            target,
        )
        for kill, target in enumerate(_TARGETS)
    ]
    silent = ratio(
        f"a worker killed while the control plane does not respond, to its next step {_WHERE}",
        [item.silent for item in ours],
        [item.silent for item in peers],
        _SILENT_TARGET,
    )
    return [*rows, silent, _row_of_lost_nodes(ours, peers)]


def _row_of_lost_nodes(ours: list[Faults], peers: list[Faults]) -> Row:
    measure = f"a node lost to the next session of its worker {_WHERE}"
    mine, other = [item.lost for item in ours], [item.lost for item in peers]
    if not any(item.has_failed for item in peers):
        return ratio(measure, mine, other, 1)
    shown = f"never: Failed after {number(median(other))} s"
    return Row(measure, f"{number(median(mine))} s", shown, mine, max(mine), 60, unit=" s")
