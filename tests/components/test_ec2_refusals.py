"""Errors come before money: each says where, what, what was given and what would do, and nothing was made."""

from pathlib import Path
from typing import Any

import pytest

from tests.ec2.preparing import prepare, refusal

pytestmark = pytest.mark.usefixtures("moto_account")

SMALL = "m7i.large (2 cpus, 8 GiB)"
GPU = "g6.xlarge (4 cpus, 16 GiB, 1 gpus)"
SMALLER = "Choose a larger instance_type, or a smaller value."


REFUSALS: list[tuple[dict[str, Any], str]] = [
    (
        {"ec2": {"instance_type": "m99.large"}},
        (
            "mnist: ec2.instance_type: 'm99.large' is not an instance type in us-east-2 (The following supplied instance types do not "
            "exist: [m99.large]). See https://aws.amazon.com/ec2/instance-types/ for the available types."
        ),
    ),
    (
        {"jobs": {"worker": {"gpus": 2, "ec2": {"instance_type": "g6.xlarge"}}}},
        f"mnist: jobs.worker.gpus: each task needs 2, but {GPU} has 1 for tasks. {SMALLER}",
    ),
    (
        {"jobs": {"worker": {"memory": "8GiB"}}},
        f"mnist: jobs.worker.memory: each task needs 8 GiB, but {SMALL} has 7.4 GiB for tasks. {SMALLER}",
    ),
    (
        {"jobs": {"ps": {"cpus": 3}}},
        f"mnist: jobs.ps.cpus: each task needs 3, but {SMALL} has 2 for tasks. {SMALLER}",
    ),
    (
        {"ec2": {"instance_type": None}, "jobs": {"ps": {"ec2": {"instance_type": "m7i.large"}}}},
        (
            "mnist: ec2.instance_type: is missing for the job worker. "
            'Set it, for example to "m7i.large", or to "g6.xlarge" for a job with gpus.'
        ),
    ),
    (
        {"ec2": {"subnet_id": "subnet-0a1b"}},
        "ec2.subnet_id: subnet-0a1b does not exist in us-east-2 (The subnet ID 'subnet-0a1b' does not exist). Correct it.",
    ),
    (
        {"ec2": {"vpc_id": "vpc-0a1b"}},
        "ec2.vpc_id: vpc-0a1b does not exist in us-east-2. Correct it, or remove it to use the default VPC.",
    ),
    (
        {"ec2": {"ssh_cidrs": None}},
        (
            "mnist: ec2.ssh_cidrs: is not set, so this computer could not reach the machines. Set it to your own address, such as "
            '["203.0.113.7/32"] (see https://checkip.amazonaws.com), or to ["anywhere"].'
        ),
    ),
    (
        {"ec2": {"ssh_cidrs": None, "connectivity": "private"}},
        (
            "mnist: ec2.ssh_cidrs: is not set, so this computer could not reach the machines. "
            'Set it to the addresses of your VPN, peering or jump host, such as ["10.0.0.0/16"].'
        ),
    ),
    (
        {"ec2": {"connectivity": "ssm"}},
        (
            'mnist: ec2.ssh_cidrs: cannot be combined with connectivity="ssm", which opens no port for ssh. '
            'Remove it, or choose "public" or "private".'
        ),
    ),
    (
        {"ec2": {"connectivity": "ssm", "ssh_cidrs": None}, "container": {"network": "host"}},
        (
            'mnist: ec2.connectivity: "ssm" gives the machines a role, which tasks on network="host" could use. '
            'Use network="overlay", or choose "public" or "private".'
        ),
    ),
    (
        {"workers": 20},
        ("mnist: ec2.max_machines: is 20, but the cluster needs 21 machines. Set max_machines=21 if that is intended."),
    ),
    (
        {"ec2": {"efs": None}},
        (
            "mnist: train_dir: is not shared by the 3 machines of the tasks. "
            'Use efs="new" for a file system of the cluster, or a URL.'
        ),
    ),
    (
        {"ec2": {"efs": None, "machine_count": 1}},
        (
            "mnist: train_dir: is on the disk of a machine that terminates itself, and would be lost with it. "
            'Use efs="new" for a file system of the cluster, or a URL, or a folder on one of your volumes '
            '(below "/mnt/volumes/sdf"), or all of container={"retain_volumes": False}, idle_timeout="never" '
            'and max_lifetime="never".'
        ),
    ),
    (
        {"ec2": {"efs": None, "machine_count": 1, "idle_timeout": "never", "max_lifetime": "never"}},
        (
            "mnist: train_dir: is on the disk of a machine, which `pulumi destroy` deletes. "
            'Use efs="new" for a file system of the cluster, or a URL, or a folder on one of your volumes '
            '(below "/mnt/volumes/sdf"), or container={"retain_volumes": False} to accept that.'
        ),
    ),
    (
        {"train_dir": "/mnt/tfdeploys/runs"},
        (
            "mnist: train_dir: is not shared by the 3 machines of the tasks. "
            'Use efs="new" for a file system of the cluster, or a URL.'
        ),
    ),
    (
        {"train_dir": "runs"},
        (
            "mnist: train_dir: is 'runs', a folder of this computer. "
            'Use a path on the machines (with efs, one below "/mnt/tfdeploy/"), or a URL.'
        ),
    ),
    (
        {"data_dir": "~/data"},
        (
            "mnist: data_dir: is '~/data', a folder of this computer. "
            'Use a path on the machines (with efs, one below "/mnt/tfdeploy/"), or a URL.'
        ),
    ),
    (
        {"ec2": {"ami": "ami-0a1b"}},
        "ec2.ami: ami-0a1b does not exist in us-east-2 (The image id '[ami-0a1b]' does not exist). Correct it.",
    ),
    (
        {"ec2": {"ami": "ssm:/mine/image"}},
        'ec2.ami: us-east-2 has no parameter /mine/image (Parameter /mine/image not found.). Set ami to an image id: "ami-…".',
    ),
    (
        {"command": []},
        (
            "mnist: command: is missing, and on ec2 the entry point of an image cannot be read before there is a machine. "
            'Give it, such as ["python", "train.py"].'
        ),
    ),
    (
        {"ec2": {"spot": True, "instance_type": "hpc7a.12xlarge"}},
        (
            "mnist: jobs.worker.ec2.spot: hpc7a.12xlarge is not available as a spot instance. Choose another type, or spot=False."
        ),
    ),
    (
        {"command": ["python", "train.py"]},
        "mnist: command: 'train.py' is not a file of `code`. It has no files (is `code` missing?).",
    ),
    (
        {"requirements": ["six"]},
        (
            "mnist: container.registry: is missing: 3 machines need the image that is built from `build` or `requirements`. "
            "Set it to a registry that all machines can pull from."
        ),
    ),
]


def test_a_cluster_that_can_stand_is_not_refused(tmp_path: Path) -> None:
    assert prepare(tmp_path) == []


@pytest.mark.parametrize(
    ("args", "said"), REFUSALS, ids=lambda value: str(value)[:50] if isinstance(value, dict) else ""
)
def test_it_is_refused(tmp_path: Path, args: dict[str, Any], said: str) -> None:
    assert refusal(tmp_path, **args) == said


def test_ssm_without_its_commands_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = tmp_path / "commands"
    commands.mkdir()
    monkeypatch.setenv("PATH", str(commands))
    for command in ("aws", "session-manager-plugin"):
        said = refusal(tmp_path, ec2={"connectivity": "ssm", "ssh_cidrs": None})
        assert said.startswith(
            f'mnist: ec2.connectivity: "ssm" needs the command `{command}`, which is not on PATH. Install it ('
        )
        (commands / command).touch(mode=0o755)
    assert prepare(tmp_path, ec2={"connectivity": "ssm", "ssh_cidrs": None}) == []


@pytest.mark.parametrize(
    "args",
    [
        {"ec2": {"efs": None}, "train_dir": "s3://bucket/runs"},
        {
            "ec2": {"efs": None, "machine_count": 1, "idle_timeout": "never", "max_lifetime": "never"},
            "container": {"retain_volumes": False},
        },
        {"ec2": {"connectivity": "private"}},
        {"train_dir": "/mnt/tfdeploy/runs"},
        {"ec2": {"efs": None}, "standalone_servers": True, "command": None},
    ],
    ids=str,
)
def test_what_is_shared_or_need_not_be_is_not_refused(tmp_path: Path, args: dict[str, Any]) -> None:
    assert prepare(tmp_path, **args) == []
