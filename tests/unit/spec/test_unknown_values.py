"""What a preview does not know: one typed value, from the arguments to the plan."""

from typing import Any

import pytest

from tfdeploy.spec.cluster import cluster_spec
from tfdeploy.spec.unknown_values import Unknown, is_known, undecided, unknowns


def test_it_is_found_at_every_depth() -> None:
    first, second = Unknown("env.A"), Unknown("command[1]")
    assert unknowns({"env": {"A": first, "B": "b"}, "command": ["python", second], "workers": 1}) == (first, second)
    assert not is_known([{"a": (first,)}])
    assert is_known({"a": ["b", 1, None]}, "text")


UNDECIDED: list[tuple[dict[str, Any], str]] = [
    ({"command": [Unknown("command[0]")]}, "command[0]"),
    ({"jobs": {"worker": {"cpus": Unknown("jobs.worker.cpus")}}}, "jobs.worker.cpus"),
    ({"ec2": {"vpc_id": Unknown("ec2.vpc_id")}}, "ec2.vpc_id"),
    ({"container": {"image": Unknown("container.image")}}, "container.image"),
    (
        {"command": ["a"], "requirements": ["b"], "container": {"image": Unknown("container.image")}},
        "container.image",
    ),
]


@pytest.mark.parametrize(("args", "name"), UNDECIDED)
def test_what_shapes_a_cluster_must_be_known(args: dict[str, Any], name: str) -> None:
    assert [item.what for item in undecided(args)] == [name]


DECIDED: list[dict[str, Any]] = [
    {"env": {"A": Unknown("env.A")}},
    {"jobs": {"worker": {"env": {"A": Unknown("jobs.worker.env.A")}}}},
    {"command": ["python", Unknown("command[1]")]},
    {"run_id": Unknown("run_id")},
    {"train_dir": Unknown("train_dir"), "data_dir": Unknown("data_dir")},
    {"backend": "docker", "container": {"image": Unknown("container.image")}},
]


@pytest.mark.parametrize("args", DECIDED)
def test_what_only_the_run_needs_may_be_unknown(args: dict[str, Any]) -> None:
    values = {"command": ["python"], "workers": 1, **args}
    assert undecided(values) == ()
    assert cluster_spec("mnist", values).name == "mnist"
