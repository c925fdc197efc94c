"""`failures.json`: the machines that failed to boot, in the cluster's folder on this computer."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ....agent.files import write_whole
from ....agent.launch.workdir import locked
from ....paths import make_private, read_json
from ...base import ClusterRef
from . import ssh
from .model import BootFailure, BootKind


def read(cluster: ClusterRef) -> Mapping[str, BootFailure]:
    """Machine to its last failed boot.

    Raises:
        SpecError: the file is damaged, or of another version.
    """
    try:
        return read_json(_file(cluster), _from_dict)
    except FileNotFoundError:
        return {}


def _from_dict(data: Mapping[str, Any]) -> dict[str, BootFailure]:
    return {name: BootFailure(**{**item, "kind": BootKind(**item["kind"])}) for name, item in data.items()}


def add(cluster: ClusterRef, machine: str, failure: BootFailure) -> None:
    """Store a failed boot."""
    make_private(ssh.folder(cluster))
    with locked(ssh.folder(cluster)):
        failures = read(cluster)
        _write(cluster, {**failures, machine: failure.following(failures.get(machine))})


def remove(cluster: ClusterRef, machine: str) -> None:
    """Forget the failures of a machine that has become ready."""
    if machine in read(cluster):
        with locked(ssh.folder(cluster)):
            _write(cluster, {name: failure for name, failure in read(cluster).items() if name != machine})


def remove_all(cluster: ClusterRef) -> None:
    """Forget all failures; the cluster is destroyed."""
    _file(cluster).unlink(missing_ok=True)


def _file(cluster: ClusterRef) -> Path:
    return ssh.folder(cluster) / "failures.json"


def _write(cluster: ClusterRef, failures: Mapping[str, BootFailure]) -> None:
    write_whole(_file(cluster), json.dumps({name: asdict(failure) for name, failure in failures.items()}, indent=1))
