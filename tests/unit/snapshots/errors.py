"""Bad inputs and what the user reads: a line for each refusal that needs no engine and no account, in the order of the cases.

The sentences about configuration, unknown arguments, constraints, places of tasks and durations are in the tests of these.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tests.unit.backends.kubernetes.test_affinity import placed
from tests.unit.snapshots import error_of, section
from tests.unit.spec.test_cluster import REFUSALS as CLUSTER
from tests.unit.spec.test_docker import REFUSALS as DOCKER
from tests.unit.spec.test_ec2 import REFUSALS as EC2
from tfdeploy.backends.backend import load
from tfdeploy.backends.docker.volumes import parse_mount
from tfdeploy.spec.cluster import cluster_spec

Args = Mapping[str, Any]

SECRETS: list[Args] = [
    {"secrets": "canary"},
    {"secrets": {"A": "canary\0"}},
    {"secrets": {"A": ["canary"]}},
    {"secrets": {".A": "canary"}},
    {"secrets": {"A": "canary"}, "env": {"A": "1"}},
]

MOUNTS = [
    *("", "/a:/b:rx", "/a", "./a:/b", "a:/b", "type=bind,source=a,target=/b", "target=/b"),
    *("source=aa,target=/b,colour=red", "source=aa,target=/b,readonly=yes"),
]
PLACEMENTS = [
    *("address:UNIQUE", "hostname:MAX_PER:2", "hostname:LIKE:node-[12]", "hostname:LIKE:a.b", "hostname:UNLIKE:(a)|b")
]


def errors() -> str:
    workers = {"command": ["python"], "workers": 1}
    return "\n".join(
        [
            _specs("a cluster", "mnist", CLUSTER, workers),
            _specs("a name", "a_b", [{}], workers),
            _specs("secrets", "mnist", SECRETS, workers),
            _specs("containers", "mnist", DOCKER, {**workers, "backend": "docker"}),
            _specs("ec2", "mnist", EC2, {**workers, "ps": 1, "backend": "ec2"}),
            section("a backend", [error_of(partial(load, "mesos"))]),
            section(
                "volumes", [error_of(partial(parse_mount, "mnist: container.volumes", text, {})) for text in MOUNTS]
            ),
            section("placement on kubernetes", [error_of(partial(placed, text)) for text in PLACEMENTS]),
        ]
    )


def _specs(title: str, name: str, refused: Sequence[Args], base: Args) -> str:
    return section(title, [error_of(partial(cluster_spec, name, {**base, **args})) for args in refused])
