"""Every argument may come from the stack's configuration; what the program gives wins."""

import json
from collections.abc import Iterator
from typing import Any

import pulumi
import pytest
from pulumi.runtime import set_all_config

from tfdeploy.arguments import TensorFlowClusterArgs
from tfdeploy.configuration import resolved, shown
from tfdeploy.errors import SpecError
from tfdeploy.spec import cluster_spec

EVERY: dict[str, Any] = {
    "command": ["python", "train.py"],
    "code": "train",
    "serve": False,
    "requirements": ["six"],
    "ps": 1,
    "workers": 2,
    "chief": 1,
    "master": True,
    "evaluator": 1,
    "gpu_workers": 1,
    "tensorboard": True,
    "jobs": {"worker": {"memory": "2GiB", "restart": {"maximum": 1}}},
    "metrics": {"accuracy": r"accuracy: (\S+)"},
    "env": {"A": "1"},
    "secrets": {"TOKEN": "hush"},
    "data_dir": "data",
    "train_dir": "runs",
    "context": {"steps": 5},
    "success": "chief",
    "restart": {"maximum": 2, "backoff": "2s", "on": ["any"]},
    "grace": "1s",
    "wait": "0",
    "start_timeout": "1m",
    "run_id": "again",
    "resume_from": "0123456789ab",
    "log_lines": 5,
    "backend": "docker",
    "docker_host": "ssh://me@manager",
    "image": "mine:1",
    "build": "image",
    "registry": "registry.example.com/team",
    "user": "1000:1000",
    "volumes": ["/shared:/shared:ro"],
    "shm_size": "1GiB",
    "placement": ["hostname:UNIQUE"],
    "network": "overlay",
    "subnet": "10.20.0.0/24",
    "keep_volumes": True,
    "region": "us-west-2",
    "instance_type": "m7i.large",
    "machines": "packed",
    "max_machines": 3,
    "lifetime": "12h",
    "idle": "never",
    "budget": 12.5,
    "ami": "deep-learning",
    "spot": True,
    "root_volume_size": "80GiB",
    "root_volume_type": "gp2",
    "ebs_volumes": ["200GiB:/scratch"],
    "vpc_id": "vpc-0123456789abcdef0",
    "subnet_id": "subnet-0123456789abcdef0",
    "ssh_key": "~/.ssh/cluster.pub",
    "ssh_user": "ubuntu",
    "ssh_from": ["203.0.113.7/32"],
    "access": "private",
    "placement_group": "near",
    "instance_profile": "pulls",
    "efs": "new",
    "keep_record": False,
    "tags": {"team": "vision"},
}


@pytest.fixture(autouse=True)
def no_configuration() -> Iterator[None]:
    set_all_config({})
    yield
    set_all_config({})


def configure(values: dict[str, Any]) -> None:
    """Set the stack's configuration as `pulumi config set` does: all of it text."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    set_all_config({f"tfdeploy:{name}": text for name, text in texts.items()})


def read(**args: Any) -> dict[str, Any]:
    return resolved("mnist", args, pulumi.Config("tfdeploy"))


def test_every_argument_has_a_case_here() -> None:
    assert set(EVERY) == set(TensorFlowClusterArgs.__annotations__)


@pytest.mark.parametrize("name", EVERY)
def test_an_argument_may_come_from_the_configuration(name: str) -> None:
    configure({name: EVERY[name]})
    assert read() == {name: EVERY[name]}


def test_a_cluster_may_come_from_the_configuration_alone() -> None:
    all_that_go_together = {**EVERY, "build": ""}
    configure(all_that_go_together)
    assert cluster_spec("mnist", read()) == cluster_spec("mnist", all_that_go_together)


@pytest.mark.parametrize("name", EVERY)
def test_what_the_program_gives_wins(name: str) -> None:
    configure({name: "nothing that could be read"})
    assert read(**{name: EVERY[name]}) == {name: EVERY[name]}


def test_none_in_the_program_leaves_it_to_the_configuration() -> None:
    configure({"workers": 3})
    assert read(workers=None) == {"workers": 3}


def test_zero_and_empty_in_the_program_are_given() -> None:
    configure({"workers": 3, "run_id": "a", "serve": True})
    assert read(workers=0, run_id="", serve=False) == {"workers": 0, "run_id": "", "serve": False}


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("workers", "many", "'many' is not a whole number"),
        ("workers", "1.5", "'1.5' is not a whole number"),
        ("serve", "maybe", "'maybe' is not true or false"),
        ("command", "python train.py", "'python train.py' is not a list as JSON"),
        ("command", '{"a": 1}', "'{\"a\": 1}' is not a list as JSON"),
        ("env", "[1]", "'[1]' is not a mapping as JSON"),
        ("restart", "never", "'never' is not a mapping as JSON"),
        ("secrets", "hush", "its value (not shown) is not a mapping as JSON"),
        ("max_machines", "all", "'all' is not a whole number"),
        ("budget", "$5", "'$5' is not a number"),
        ("ssh_from", "203.0.113.7/32", "'203.0.113.7/32' is not a list as JSON"),
        ("tags", '["team"]', "'[\"team\"]' is not a mapping as JSON"),
    ],
)
def test_a_wrong_type_in_the_configuration_is_refused(name: str, text: str, wrong: str) -> None:
    configure({name: text})
    with pytest.raises(SpecError) as refusal:
        read()
    remedy = f"Set it again: pulumi config set tfdeploy:{name} VALUE."
    assert str(refusal.value) == f"configuration tfdeploy:{name}: {wrong}. {remedy}"


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(SpecError) as refusal:
        read(worker=2)
    known = ", ".join(TensorFlowClusterArgs.__annotations__)
    assert str(refusal.value) == f"mnist: worker: is no argument of TensorFlowCluster. It knows {known}."


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("env", {"HF_TOKEN": "hf_abc", "A": pulumi.Output.from_input("b")}, '{"HF_TOKEN": "…", "A": "…"}'),
        ("jobs", {"ps": {"env": {"KEY": "b"}, "gpus": 1}}, '{"ps": {"env": {"KEY": "…"}, "gpus": 1}}'),
        ("jobs", {"ps": {"gpus": 1}}, '{"ps": {"gpus": 1}}'),
        ("secrets", {"A": "b"}, "(secret)"),
        ("workers", 2, "2"),
        ("command", "train", "train"),
        ("image", pulumi.Output.from_input("tf"), "(an output)"),
    ],
)
def test_an_argument_is_shown_without_what_may_be_secret(key: str, value: Any, text: str) -> None:
    assert shown(key, value) == text
