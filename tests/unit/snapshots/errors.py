"""Bad inputs and what the user reads: one case for each refusal that needs no engine and no account."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pulumi
from pulumi.runtime import set_all_config

from tests.unit import cases
from tests.unit.backends.ec2 import fleets
from tests.unit.plan.test_scheduler import job, machine, racks
from tests.unit.snapshots import case, error_of, section
from tests.unit.spec.test_cluster import REFUSALS as CLUSTER
from tests.unit.spec.test_docker import REFUSALS as DOCKER
from tests.unit.spec.test_ec2 import REFUSALS as EC2
from tfdeploy.backends.docker.volumes import parse_mount
from tfdeploy.backends.ec2.machine.machine_count import machine_requests
from tfdeploy.backends.load import load
from tfdeploy.component.config import resolved
from tfdeploy.plan.constraints import parse as parse_constraint
from tfdeploy.plan.plan import make_plan
from tfdeploy.plan.scheduler import Demand, place
from tfdeploy.spec.cluster import cluster_spec
from tfdeploy.units import seconds, size

Args = Mapping[str, Any]

SECRETS: list[Args] = [
    {"secrets": "canary"},
    {"secrets": {"A": "canary\0"}},
    {"secrets": {"A": ["canary"]}},
    {"secrets": {".A": "canary"}},
    {"secrets": {"A": "canary"}, "env": {"A": "1"}},
]

CONFIGURATION: list[tuple[str, str]] = [
    ("workers", "many"),
    ("tensorboard", "maybe"),
    ("command", "python train.py"),
    ("env", "[1]"),
    ("secrets", "hush"),
]

CONSTRAINTS = [
    "",
    "hostname",
    "rack:unique",
    "rack:UNIQUE:1",
    "rack:LIKE",
    "rack:MAX_PER:0",
    "rack:GROUP_BY:-1",
    "rack:LIKE:(",
]

MOUNTS = ["", "/a", "/a:b", "./a:/b", "type=bind,source=a,target=/b", "target=/b", "source=aa,target=/b,colour=red"]

FLEETS: list[Args] = [
    {"ps": 1, "workers": 2, "ec2": {"max_machines": 2}},
    {"workers": 1, "jobs": {"worker": {"gpus": 1}}},
    {"workers": 1, "jobs": {"worker": {"memory": "8GiB"}}},
]

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
            _specs("an unknown argument", "mnist", [], workers) + _unknown(),
            _specs("secrets", "mnist", SECRETS, workers),
            _specs("containers", "mnist", DOCKER, {**workers, "backend": "docker"}),
            _specs("ec2", "mnist", EC2, {**workers, "ps": 1, "backend": "ec2"}),
            section(
                "configuration", [case(f"tfdeploy:{key}={text}", _configured(key, text)) for key, text in CONFIGURATION]
            ),
            section("a backend", [case("mesos", error_of(partial(load, "mesos")))]),
            section(
                "placement constraints",
                [
                    _read(partial(parse_constraint, "mnist: jobs.worker.container.placement"), text)
                    for text in CONSTRAINTS
                ],
            ),
            section(
                "volumes",
                [_read(lambda text: parse_mount("mnist: container.volumes", text, {}), text) for text in MOUNTS],
            ),
            section(
                "durations and sizes",
                [
                    *(_read(seconds, text) for text in ("soon", "-1")),
                    *(_read(size, text) for text in ("much", "9" * 400 + "T")),
                ],
            ),
            section("places of tasks", [case(title, error_of(call)) for title, call in PLACES.items()]),
            section("machines on ec2", [case(str(args), error_of(partial(_fleet, args))) for args in FLEETS]),
            section("a name too long", [case("a" * 60, error_of(_long_name))]),
        ]
    )


def _long_name() -> object:
    asked = replace(cases.spec(workers=1), name="a" * 60)
    return make_plan(asked, cases.inventory(asked))


def _specs(title: str, name: str, refused: Sequence[Args], base: Args) -> str:
    return section(
        title, [case(str(dict(args)), error_of(partial(cluster_spec, name, {**base, **args}))) for args in refused]
    )


def _unknown() -> str:
    names = ("worker", "image", "instance_type", "xyz")
    return "".join(
        case(f"{name}=2", error_of(partial(resolved, "mnist", {name: 2}, pulumi.Config("tfdeploy")))) + "\n"
        for name in names
    )


def _configured(key: str, text: str) -> str:
    set_all_config({f"tfdeploy:{key}": text})
    try:
        return error_of(lambda: resolved("mnist", {}, pulumi.Config("tfdeploy")))
    finally:
        set_all_config({})


def _read(read: Callable[[str], object], text: str) -> str:
    return case(repr(text), error_of(lambda: read(text)))


def _fleet(args: Args) -> object:
    return machine_requests(fleets.spec(**args), fleets.TYPES, {})
