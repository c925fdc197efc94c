"""Bad inputs and what the user reads: one case for each refusal that needs no engine and no account.

The sentences about configuration, unknown arguments, placement constraints and durations are in the tests of these.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tests.unit.plan.test_scheduler import job, machine, racks
from tests.unit.snapshots import case, error_of, section
from tests.unit.spec.test_cluster import REFUSALS as CLUSTER
from tests.unit.spec.test_docker import REFUSALS as DOCKER
from tests.unit.spec.test_ec2 import REFUSALS as EC2
from tfdeploy.backends.docker.volumes import parse_mount
from tfdeploy.backends.load import load
from tfdeploy.plan.scheduler import Demand, place
from tfdeploy.spec.cluster import cluster_spec

Args = Mapping[str, Any]

SECRETS: list[Args] = [
    {"secrets": "canary"},
    {"secrets": {"A": "canary\0"}},
    {"secrets": {"A": ["canary"]}},
    {"secrets": {".A": "canary"}},
    {"secrets": {"A": "canary"}, "env": {"A": "1"}},
]

MOUNTS = ["", "source=aa,target=/b,colour=red"]

PLACES: dict[str, Callable[[], object]] = {
    "no machine": lambda: place("mnist", [Demand("worker-0")], []),
    "nothing large enough": lambda: place("mnist", [Demand("worker-0", cpus=4.5, gpus=2)], [machine("m0", gpus="0")]),
    "a constraint": lambda: place("mnist", job("worker", 1, "hostname:UNIQUE", "rack:IS:c"), racks("ab.")),
    "no machine left": lambda: place("mnist", job("worker", 3, "rack:UNIQUE"), racks("ab.")),
    "a constraint and a size": lambda: place("mnist", job("worker", 3, "rack:LIKE:b", cpus=2), racks("ab.")),
}


def errors() -> str:
    """The whole surface."""
    workers = {"command": ["python"], "workers": 1}
    return "\n".join(
        [
            _specs("a cluster", "mnist", CLUSTER, workers),
            _specs("a name", "a_b", [{}], workers),
            _specs("secrets", "mnist", SECRETS, workers),
            _specs("containers", "mnist", DOCKER, {**workers, "backend": "docker"}),
            _specs("ec2", "mnist", EC2, {**workers, "ps": 1, "backend": "ec2"}),
            section("a backend", [case("mesos", error_of(partial(load, "mesos")))]),
            section(
                "volumes",
                [_read(lambda text: parse_mount("mnist: container.volumes", text, {}), text) for text in MOUNTS],
            ),
            section("places of tasks", [case(title, error_of(call)) for title, call in PLACES.items()]),
        ]
    )


def _specs(title: str, name: str, refused: Sequence[Args], base: Args) -> str:
    return section(
        title, [case(str(dict(args)), error_of(partial(cluster_spec, name, {**base, **args}))) for args in refused]
    )


def _read(read: Callable[[str], object], text: str) -> str:
    return case(repr(text), error_of(lambda: read(text)))
