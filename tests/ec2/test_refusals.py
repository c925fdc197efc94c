"""Errors come before money: each says where, what, what was given and what would do, and nothing was made."""

from pathlib import Path
from typing import Any

import pytest

from tests.ec2.preparing import prepare, refusal

pytestmark = pytest.mark.usefixtures("moto_account")

SMALL = "m7i.large (2 cpus, 8 GiB)"
GPU = "g6.xlarge (4 cpus, 16 GiB, 1 gpus)"
SMALLER = "Choose a larger instance_type, or ask for less."


REFUSALS: list[tuple[dict[str, Any], str]] = [
    (
        {"instance_type": "m99.large"},
        (
            "mnist: instance_type: 'm99.large' is no type of us-east-2 (The following supplied instance types do not "
            "exist: [m99.large]). See https://aws.amazon.com/ec2/instance-types/ for those that there are."
        ),
    ),
    (
        {"jobs": {"worker": {"gpus": 2, "instance_type": "g6.xlarge"}}},
        f"mnist: jobs: worker: gpus: each task asks for 2, and {GPU} has 1 for tasks. {SMALLER}",
    ),
    (
        {"jobs": {"worker": {"memory": "8GiB"}}},
        f"mnist: jobs: worker: memory: each task asks for 8 GiB, and {SMALL} has 7.4 GiB for tasks. {SMALLER}",
    ),
    (
        {"jobs": {"ps": {"cpus": 3}}},
        f"mnist: jobs: ps: cpus: each task asks for 3, and {SMALL} has 2 for tasks. {SMALLER}",
    ),
    (
        {"instance_type": None, "jobs": {"ps": {"instance_type": "m7i.large"}}},
        (
            "mnist: instance_type: is not given for worker. "
            'Give one, such as "m7i.large", or "g6.xlarge" for a job with gpus.'
        ),
    ),
    (
        {"subnet_id": "subnet-0a1b"},
        "subnet_id: subnet-0a1b is not in us-east-2 (The subnet ID 'subnet-0a1b' does not exist). Mend it.",
    ),
    (
        {"vpc_id": "vpc-0a1b"},
        "vpc_id: vpc-0a1b is not in us-east-2. Mend it, or leave it out for the default VPC.",
    ),
    (
        {"ssh_from": ["203.0.113.7/24"]},
        (
            "mnist: ssh_from: has '203.0.113.7/24' in it, which is none (203.0.113.7/24 has host bits set). "
            'Each takes a CIDR, such as "203.0.113.7/32".'
        ),
    ),
    (
        {"ssh_from": ["0.0.0.0/0"]},
        (
            "mnist: ssh_from: has '0.0.0.0/0' in it: the whole world. "
            'Give your own address; "anywhere" if you mean it.'
        ),
    ),
    (
        {"ssh_from": None},
        (
            "mnist: ssh_from: is not given: nobody could reach the machines. Give your own address, such as "
            '["203.0.113.7/32"] (https://checkip.amazonaws.com says it), or ["anywhere"].'
        ),
    ),
    (
        {"ssh_from": None, "access": "private"},
        (
            "mnist: ssh_from: is not given: nobody could reach the machines. "
            'Give those that VPN, peering or jump host come from, such as ["10.0.0.0/16"].'
        ),
    ),
    (
        {"access": "ssm"},
        (
            'mnist: ssh_from: is given together with access="ssm", by which ssh is let in from nowhere. '
            'Leave it out, or choose "public" or "private".'
        ),
    ),
    (
        {"access": "ssm", "ssh_from": None, "network": "host"},
        (
            'mnist: access: "ssm" gives the machines a role, and tasks on network="host" would reach it. '
            'Leave `network` at "overlay", or choose "public" or "private".'
        ),
    ),
    (
        {"workers": 20},
        (
            "mnist: max_machines: the cluster would have 21 machines, and 20 is the most agreed to. "
            "Give max_machines=21 if you mean it."
        ),
    ),
    (
        {"efs": None},
        (
            "mnist: train_dir: is not shared by the 3 machines that the tasks stand on. "
            'Give efs="new" for a file system of the cluster\'s own, or a URL.'
        ),
    ),
    (
        {"efs": None, "machines": "1"},
        (
            "mnist: train_dir: is on the disk of a machine that ends itself, and would go with it. "
            'Give efs="new" for a file system of the cluster\'s own, or a URL, or a folder on a volume of yours '
            '(below "/mnt/volumes/sdf"), or both idle="never" and lifetime="never".'
        ),
    ),
    (
        {"train_dir": "/mnt/tfdeploys/runs"},
        (
            "mnist: train_dir: is not shared by the 3 machines that the tasks stand on. "
            'Give efs="new" for a file system of the cluster\'s own, or a URL.'
        ),
    ),
    (
        {"train_dir": "runs"},
        (
            "mnist: train_dir: is 'runs', a folder of this computer. "
            'Give a path on the machines (with efs, one below "/mnt/tfdeploy/"), or a URL.'
        ),
    ),
    (
        {"data_dir": "~/data"},
        (
            "mnist: data_dir: is '~/data', a folder of this computer. "
            'Give a path on the machines (with efs, one below "/mnt/tfdeploy/"), or a URL.'
        ),
    ),
    (
        {"ami": "ami-0a1b"},
        "ami: ami-0a1b is not in us-east-2 (The image id '[ami-0a1b]' does not exist). Mend it.",
    ),
    (
        {"ami": "ssm:/mine/image"},
        'ami: us-east-2 has no parameter /mine/image (Parameter /mine/image not found.). Name an image: "ami-…".',
    ),
    (
        {"command": []},
        (
            "mnist: command: is missing, and on ec2 no image can be asked for its entry point. "
            'Give it, such as ["python", "train.py"].'
        ),
    ),
    (
        {"spot": True, "instance_type": "hpc7a.12xlarge"},
        (
            "mnist: jobs: worker: spot: hpc7a.12xlarge cannot be had as a spot instance. Choose another type, or spot=False."
        ),
    ),
    (
        {"command": ["python", "train.py"]},
        "mnist: command: 'train.py' is no file of `code`. It has no files (is `code` missing?).",
    ),
    (
        {"requirements": ["six"]},
        (
            "mnist: registry: is not given, and what is built must reach 3 machines. "
            "Name a registry that all of them reach."
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
        said = refusal(tmp_path, access="ssm", ssh_from=None)
        assert said.startswith(
            f'mnist: access: "ssm" needs the command `{command}`, which is not on PATH. Install it ('
        )
        (commands / command).touch(mode=0o755)
    assert prepare(tmp_path, access="ssm", ssh_from=None) == []


@pytest.mark.parametrize(
    "args",
    [
        {"efs": None, "train_dir": "s3://bucket/runs"},
        {"efs": None, "machines": "1", "idle": "never", "lifetime": "never"},
        {"access": "private"},
        {"train_dir": "/mnt/tfdeploy/runs"},
        {"efs": None, "serve": True, "command": None},
    ],
    ids=str,
)
def test_what_is_shared_or_need_not_be_is_not_refused(tmp_path: Path, args: dict[str, Any]) -> None:
    assert prepare(tmp_path, **args) == []
