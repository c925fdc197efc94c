"""Every argument may come from the stack's configuration; what the program gives wins."""

import json
from collections.abc import Iterator
from typing import Any

import pulumi
import pytest
from pulumi.runtime import set_all_config

from tfdeploy.args import TensorFlowClusterArgs
from tfdeploy.errors import SpecError
from tfdeploy.program.config import resolved, shown
from tfdeploy.spec.cluster import cluster_spec
from tfdeploy.spec.environment import SecretText

EVERY: dict[str, Any] = {
    "command": ["python", "train.py"],
    "flags": "never",
    "code": "train",
    "standalone_servers": False,
    "requirements": ["six"],
    "ps": 1,
    "workers": 2,
    "chief": True,
    "tf_config_master": True,
    "evaluator": True,
    "elastic": {"max": 8},
    "gpu_workers": 1,
    "tensorboard": True,
    "jobs": {"worker": {"memory": "2GiB", "restart": {"maximum": 1}}},
    "services": {"store": {"command": ["redis-server", "--port={port}"], "count": 2}},
    "data_service": {"workers": 4},
    "metrics": {"accuracy": r"accuracy: (\S+)"},
    "until": {"accuracy": ">= 0.95"},
    "env": {"A": "1"},
    "secrets": {"TOKEN": "hush"},
    "data_dir": "data",
    "train_dir": "runs",
    "artifacts": ["export/**"],
    "checkpoint_upload_interval": "10m",
    "context": {"steps": 5},
    "success": "chief",
    "worker_timeout": "2m",
    "evaluator_timeout": "1h",
    "restart": {"maximum": 2, "backoff": "2s", "on": ["any"]},
    "stop_grace_period": "1s",
    "wait": "0",
    "start_timeout": "1m",
    "retention": "30d",
    "run_id": "again",
    "adopt": "k3v9x2abcd",
    "resume_from": "0123456789ab",
    "log_lines": 5,
    "backend": "docker",
    "docker": {"host": "ssh://me@manager"},
    "container": {
        "image": "mine:1",
        "build": "image",
        "registry": "registry.example.com/team",
        "user": "1000:1000",
        "volumes": ["/shared:/shared:ro"],
        "shm_size": "1GiB",
        "placement": ["hostname:UNIQUE"],
        "network": "overlay",
        "subnet": "10.20.0.0/24",
        "retain_volumes": True,
    },
    "kubernetes": {
        "context": "kind-kind",
        "kubeconfig": "~/.kube/other",
        "namespace": "training",
        "node_selector": {"cloud.google.com/gke-spot": "true"},
        "tolerations": ["nvidia.com/gpu"],
        "priority_class": "low",
        "service_account": "trainer",
        "image_pull_secrets": ["registry"],
        "queue": "team-a",
        "storage_class": "standard",
        "labels": {"team": "a"},
        "annotations": {"example.com/owner": "me"},
    },
    "ec2": {
        "region": "us-west-2",
        "instance_type": "m7i.large",
        "machine_layout": "packed",
        "max_machines": 3,
        "max_lifetime": "12h",
        "idle_timeout": "never",
        "budget": 12.5,
        "ami": "deep-learning",
        "spot": True,
        "root_volume_size": "80GiB",
        "root_volume_type": "gp2",
        "ebs_volumes": ["200GiB:/scratch"],
        "vpc_id": "vpc-0123456789abcdef0",
        "subnet_id": "subnet-0123456789abcdef0",
        "ssh_public_key": "~/.ssh/cluster.pub",
        "ssh_user": "ubuntu",
        "ssh_cidrs": ["203.0.113.7/32"],
        "connectivity": "private",
        "placement_group": "near",
        "instance_profile": "pulls",
        "efs": "new",
        "retain_record": False,
        "tags": {"team": "vision"},
    },
}


@pytest.fixture(autouse=True)
def no_configuration() -> Iterator[None]:
    set_all_config({}, [])
    yield
    set_all_config({}, [])


def configure(values: dict[str, Any], secret: tuple[str, ...] = ()) -> None:
    """Set the stack's configuration as `pulumi config set` does: all of it text, some of it `--secret`."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    configured = {f"tfdeploy:{name}": text for name, text in texts.items()}
    set_all_config(configured, [f"tfdeploy:{name}" for name in secret])


def read(**args: Any) -> dict[str, Any]:
    return resolved("mnist", args, pulumi.Config("tfdeploy"))


def test_every_argument_has_a_case_here() -> None:
    assert set(EVERY) == set(TensorFlowClusterArgs.__annotations__)


def test_a_cluster_may_come_from_the_configuration_alone() -> None:
    all_that_go_together = {**EVERY, "gpu_workers": 0, "container": {**EVERY["container"], "build": ""}}
    configure(all_that_go_together)
    assert read() == all_that_go_together
    assert cluster_spec("mnist", read()) == cluster_spec("mnist", all_that_go_together)


GROUPS = ("elastic", "restart", "container", "docker", "ec2", "kubernetes")
MAPPINGS = (*GROUPS, "jobs", "services", "data_service", "metrics", "until", "env", "secrets", "context")


@pytest.mark.parametrize("name", [name for name in EVERY if name not in MAPPINGS])
def test_what_the_program_gives_wins(name: str) -> None:
    configure({name: "nothing that could be read"})
    assert read(**{name: EVERY[name]}) == {name: EVERY[name]}


@pytest.mark.parametrize("name", MAPPINGS)
def test_mappings_of_program_and_configuration_are_merged_key_by_key(name: str) -> None:
    key, value = next(iter(EVERY[name].items()))
    configure({name: {key: "overridden", "another": EVERY[name]}})
    assert read(**{name: {key: value}}).keys() == {name}
    merged = read(**{name: {key: value}})[name]
    assert merged[key] == value
    assert set(merged) == {key, "another"}


def test_groups_are_merged_at_every_level() -> None:
    configure({"jobs": {"worker": {"cpus": "0.5", "ec2": {"spot": True}}, "ps": {"cpus": 1}}})
    merged = read(jobs={"worker": {"gpus": 1, "ec2": {"instance_type": "g6.xlarge", "spot": None}}})["jobs"]
    assert merged == {
        "worker": {"cpus": 0.5, "gpus": 1, "ec2": {"instance_type": "g6.xlarge", "spot": True}},
        "ps": {"cpus": 1},
    }


def test_a_value_below_a_path_gets_the_type_of_its_argument() -> None:
    configure({"container": {"user": 1000}, "ec2": {"budget": "2.5", "tags": {"team": 7}, "spot": 1}})
    assert read() == {"container": {"user": "1000"}, "ec2": {"budget": 2.5, "tags": {"team": "7"}, "spot": True}}


def test_zero_and_empty_in_the_program_are_given() -> None:
    configure({"workers": 3, "run_id": "a", "standalone_servers": True})
    assert read(workers=0, run_id="", standalone_servers=False) == {
        "workers": 0,
        "run_id": "",
        "standalone_servers": False,
    }


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("workers", "many", "'many' is not an integer"),
        ("tensorboard", "maybe", "'maybe' is not true or false"),
        ("command", "python train.py", "'python train.py' is not a list as JSON"),
        ("command", '{"a": 1}', "'{\"a\": 1}' is not a list as JSON"),
        ("env", "[1]", "the value (not shown) is not a mapping as JSON"),
        ("secrets", "hush", "the value (not shown) is not a mapping as JSON"),
    ],
)
def test_a_wrong_type_in_the_configuration_is_refused(name: str, text: str, wrong: str) -> None:
    configure({name: text})
    with pytest.raises(SpecError) as refusal:
        read()
    remedy = f"Set it again: pulumi config set tfdeploy:{name} VALUE."
    assert str(refusal.value) == f"configuration tfdeploy:{name}: {wrong}. {remedy}"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("worker", "Did you mean 'workers'?"),
        ("instance_type", 'Move it into the group `ec2`: ec2={"instance_type": …}.'),
        ("xyz", "Run `tfdeploy options` for all of them."),
    ],
)
def test_an_unknown_argument_is_refused(name: str, remedy: str) -> None:
    with pytest.raises(SpecError) as refusal:
        read(**{name: 2})
    assert str(refusal.value) == f"mnist: {name}: is not an argument of TensorFlowCluster. {remedy}"


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("env", {"HF_TOKEN": "hf_abc", "A": pulumi.Output.from_input("b")}, '{"HF_TOKEN": "…", "A": "…"}'),
        ("jobs", {"ps": {"env": {"KEY": "b"}, "gpus": 1}}, '{"ps": {"env": {"KEY": "…"}, "gpus": 1}}'),
        ("jobs", {"ps": {"gpus": 1}}, '{"ps": {"gpus": 1}}'),
        ("secrets", {"A": "b"}, "(secret)"),
        ("workers", 2, "2"),
        ("command", "train", "train"),
        ("run_id", pulumi.Output.from_input("tf"), "(an output)"),
    ],
)
def test_an_argument_is_shown_without_what_may_be_secret(key: str, value: Any, text: str) -> None:
    assert shown(key, value) == text


CANARY = "canary-0c7d3e"


def test_a_secret_env_of_the_configuration_is_merged_and_stays_secret() -> None:
    configure({"env": {"KEY": CANARY, "N": 5, "OWN": CANARY}}, secret=("env",))
    merged = read(env={"OWN": "plain"})
    assert merged == {"env": {"KEY": SecretText(CANARY), "N": SecretText("5"), "OWN": "plain"}}
    assert CANARY not in repr(merged)
    spec = cluster_spec("mnist", {"command": ["python"], "workers": 1, **merged})
    assert (spec.env, spec.secret_env) == ({"OWN": "plain"}, ("KEY", "N"))


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("env", "secrets")])
def test_no_other_argument_may_be_secret_configuration(name: str) -> None:
    configure({name: CANARY if isinstance(EVERY[name], str) else EVERY[name]}, secret=(name,))
    with pytest.raises(SpecError, match="is secret, but this argument is stored in plain text") as refusal:
        read()
    assert refusal.value.where == f"configuration tfdeploy:{name}"
    assert CANARY not in str(refusal.value)


@pytest.mark.parametrize("name", EVERY)
def test_no_message_shows_a_value_of_secret_configuration(name: str) -> None:
    """Whatever is wrong with it: of the wrong type, torn, or with characters that nothing can hold."""
    for text in (
        f'{{"API": "{CANARY}"',
        f'["{CANARY}"]',
        json.dumps({"API": [CANARY]}),
        json.dumps({"API": f"{CANARY}\0"}),
    ):
        configure({name: text}, secret=(name,))
        with pytest.raises(SpecError) as refusal:
            cluster_spec("mnist", {"command": ["python"], "workers": 1, **read()})
        assert CANARY not in str(refusal.value)
