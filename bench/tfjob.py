"""MNIST on Kubernetes by `pulumi up`, against `kubectl apply` of a TFJob with the same image, program, folders and labels of nodes, by
turns in one Kubernetes of three nodes.

The peer is Kubeflow's training-operator, built from its Go module and installed by its manifests, with its webhook; `restartPolicy:
OnFailure` (`ExitCode` took 30 s after each kill), all else by default. TensorFlow is mounted from this computer in both. A time from
`pulumi up` contains the start of Pulumi and, at the end, the copy of the record. A lost node is killed; once the control plane has
noticed that (after 20 s here, 50 s by default), its object is deleted, as the controller of a cloud does. Measured until the worker's
session at the ps. Its next step is later in both, by up to 15 minutes: the ps has a connection to the address that does not respond any
more, and the gRPC of TensorFlow has no keepalive.
"""

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from typing import NamedTuple

from . import mnist
from .engine import workplace
from .on_kubernetes import Ours, Peer, Training, kubernetes, label
from .pairs import log
from .processes import until
from .table import Row, number, ratio

_TURNS = 5
_STEPS = 500
_SECONDS = 180.0
_WORKER = "worker-1"
_WHERE = "on Kubernetes, 1 ps + 2 workers, against a TFJob"


class Times(NamedTuple):
    """Seconds of one training to its end, and of another with faults."""

    first_step: float
    done: float
    killed: float
    """From a kill of a worker to its next step."""
    killed_again: float
    """The back-off of a kubelet doubles."""
    lost: float
    has_failed: bool
    """Whether the loss of a node has ended the training; else the worker had a session again after `lost` seconds."""


def run() -> list[Row]:
    """All rows from the same trainings."""
    ours: list[Times] = []
    peers: list[Times] = []
    with workplace() as place, kubernetes(place) as kube:
        for turn in range(1, _TURNS + 1):
            for times, kind in ((ours, Ours), (peers, Peer)):
                with ExitStack() as stack:
                    whole = _whole(kind(stack, place, kube, f"{kind.__name__.lower()}-{turn}", _STEPS))
                with ExitStack() as stack:
                    training = kind(stack, place, kube, f"{kind.__name__.lower()}-lost-{turn}", mnist.ENDLESS)
                    times.append(_faults(training, *whole))
                log(f"{kind.__name__}, turn {turn}/{_TURNS}: {times[-1]}")
    return rows(ours, peers)


def _whole(training: Training) -> tuple[float, float]:
    """Seconds to the first step, and to the end."""
    begun = time.monotonic()
    training.begin()
    first = until(lambda: training.pods.step_after("", begun), "a first training step", training)
    training.until_done()
    done = time.monotonic()
    training.delete()
    return first - begun, done - begun


def _faults(training: Training, first_step: float, done: float) -> Times:
    training.begin()
    _trains(training, 0.0)
    killed, killed_again = _killed(training), _killed(training)
    node, kube = training.pods.node_of(_WORKER), training.pods.kube
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
        return Times(first_step, done, killed, killed_again, ended - at, training.has_failed())
    finally:
        kube.start_node(node)
        until(lambda: _is_registered(training, node.name), f"{node.name} registers again")
        label(kube, node)
        node.wait_ready()


def _is_registered(training: Training, name: str) -> bool:
    return any(item["metadata"]["name"] == name for item in training.pods.kube.api.items("/api/v1/nodes"))


def _killed(training: Training) -> float:
    """Seconds from the sudden end of a worker's program to its next step."""
    (process,) = training.pods.programs(_WORKER)
    at = time.monotonic()
    process.send_signal(signal.SIGKILL)
    return _trains(training, at) - at


def _trains(training: Training, after: float) -> float:
    return until(lambda: training.pods.step_after(_WORKER, after), f"a step of {_WORKER}", training, seconds=_SECONDS)


def rows(ours: list[Times], peers: list[Times]) -> list[Row]:
    """Those of all trainings."""

    def row(measure: str, seconds: Callable[[Times], float], target: float) -> Row:
        return ratio(f"{measure} {_WHERE}", [*map(seconds, ours)], [*map(seconds, peers)], target)

    return [
        row("`pulumi up` or `kubectl apply` to the first training step", lambda times: times.first_step, 1.25),
        row(f"`pulumi up` or `kubectl apply` to the end of {_STEPS} steps", lambda times: times.done, 1),
        row("a worker killed by SIGKILL, time 1, to its next step", lambda times: times.killed, 1),
        row("a worker killed by SIGKILL, time 2, to its next step", lambda times: times.killed_again, 1),
        _row_of_lost_nodes(ours, peers),
    ]


def _row_of_lost_nodes(ours: list[Times], peers: list[Times]) -> Row:
    measure = f"a node lost to the next session of its worker {_WHERE}"
    mine, other = [item.lost for item in ours], [item.lost for item in peers]
    if not any(item.has_failed for item in peers):
        return ratio(measure, mine, other, 1)
    shown = f"never: Failed after {number(median(other))} s"
    return Row(measure, f"{number(median(mine))} s", shown, mine, 60, unit=" s")
