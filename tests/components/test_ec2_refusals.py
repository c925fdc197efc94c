"""Errors come before money: each says where, what, what was given and what would do, and nothing was made."""

from pathlib import Path
from typing import Any

import pytest

from tests.ec2.preparing import prepare, refusal
from tests.unit.cases import check_golden

pytestmark = pytest.mark.usefixtures("moto_account")

REFUSED: list[dict[str, Any]] = [
    {"ec2": {"instance_type": "m99.large"}},
    {"jobs": {"worker": {"gpus": 2, "ec2": {"instance_type": "g6.xlarge"}}}},
    {"ec2": {"instance_type": None}, "jobs": {"ps": {"ec2": {"instance_type": "m7i.large"}}}},
    {"ec2": {"subnet_id": "subnet-0a1b"}},
    {"ec2": {"vpc_id": "vpc-0a1b"}},
    {"ec2": {"ssh_cidrs": None}},
    {"ec2": {"ssh_cidrs": None, "connectivity": "private"}},
    {"ec2": {"connectivity": "ssm"}},
    {"ec2": {"connectivity": "ssm", "ssh_cidrs": None}, "container": {"network": "host"}},
    {"workers": 20},
    {"ec2": {"efs": None}},
    {"ec2": {"efs": None, "machine_count": 1}},
    {"ec2": {"efs": None, "machine_count": 1, "idle_timeout": "never", "max_lifetime": "never"}},
    {"train_dir": "/mnt/tfdeploys/runs"},
    {"train_dir": "runs"},
    {"data_dir": "~/data"},
    {"ec2": {"ami": "ami-0a1b"}},
    {"ec2": {"ami": "ssm:/mine/image"}},
    {"command": []},
    {"ec2": {"spot": True, "instance_type": "hpc7a.12xlarge"}},
    {"command": ["python", "train.py"]},
    {"requirements": ["six"]},
]


def test_a_cluster_that_can_stand_is_not_refused(tmp_path: Path) -> None:
    assert prepare(tmp_path) == []


def test_what_cannot_stand_is_refused_with_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    check_golden("ec2-refusals", "\n".join(refusal(tmp_path, **args) for args in REFUSED))


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
