"""What this computer remembers of machines whose boot failed: a file beside those by which they are reached."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...agent.workplace import held
from ...ec2 import failures
from ...ec2.failures import Failure, Kind
from ..base import Cluster
from ..folders import make_private, put
from . import reach

_FILE = "failures.json"


def read(cluster: Cluster) -> Mapping[str, Failure]:
    """Machine to the last failure of its boot."""
    try:
        found: Mapping[str, Any] = json.loads((reach.of(cluster) / _FILE).read_text())
    except FileNotFoundError:
        return {}
    return {name: Failure(**{**one, "kind": Kind(**one["kind"])}) for name, one in found.items()}


def remember(cluster: Cluster, machine: str, failed: Failure) -> None:
    """A boot has failed."""
    make_private(reach.of(cluster))
    with held(reach.of(cluster)):
        before = read(cluster)
        _write(cluster, {**before, machine: failures.after(before.get(machine), failed)})


def forget(cluster: Cluster, machine: str) -> None:
    """The machine has become ready."""
    if machine in read(cluster):
        with held(reach.of(cluster)):
            _write(cluster, {name: one for name, one in read(cluster).items() if name != machine})


def forget_all(cluster: Cluster) -> None:
    """The cluster is taken away."""
    (reach.of(cluster) / _FILE).unlink(missing_ok=True)


def _write(cluster: Cluster, found: Mapping[str, Failure]) -> None:
    put(reach.of(cluster) / _FILE, json.dumps({name: asdict(one) for name, one in found.items()}, indent=1))
