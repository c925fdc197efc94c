"""The policy that is printed is for the stack's cluster and configuration, and for the options."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.clusters import cluster_ref
from tests.unit.cases import plan, spec
from tfdeploy import registry
from tfdeploy.backends.ec2.aws.iam_policy import PolicyRequest, document, everything
from tfdeploy.cli.typer_app import app
from tfdeploy.errors import SpecError
from tfdeploy.report.expected import expected_state

CONFIG = """\
config:
  aws:region: eu-west-1
  tfdeploy:backend: ec2
  tfdeploy:ec2:
    connectivity: ssm
    ebs_volumes: [64GiB:/scratch]
  tfdeploy:jobs:
    worker: {ec2: {ebs_volumes: ["vol-0a1b2c3d:/data"]}}
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a program with the stack `dev`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: project\nruntime: python\n")
    return tmp_path


def printed(*options: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["iam-policy", *options], catch_exceptions=False)
    policy: dict[str, Any] = json.loads(result.stdout)
    return policy


def test_without_a_stack_the_options_decide(program: Path) -> None:
    assert printed() == document(PolicyRequest())
    options = ("--region", "us-west-2", "--account", "123456789012", "--efs", "new", "--spot")
    assert printed(*options) == document(PolicyRequest("123456789012", "us-west-2", new_files=True, spot=True))
    assert printed("--efs", "fs-1") == document(PolicyRequest())
    assert printed("--ebs-volume", "vol-1", "--ebs-volume", "vol-2") == document(
        PolicyRequest(volumes=("vol-1", "vol-2"))
    )


def test_the_configuration_of_the_stack_counts(program: Path) -> None:
    (program / "Pulumi.dev.yaml").write_text(CONFIG)
    expected = PolicyRequest(region="eu-west-1", ssm=True, volumes=("vol-0a1b2c3d",))
    assert printed("--stack", "dev") == document(expected)


def test_the_cluster_of_the_stack_counts(program: Path) -> None:
    cluster = {**cluster_ref("ec2", "ec2://us-east-2/mnist-a"), "project": "project", "stack": "dev"}
    options = {
        "ec2": json.dumps({"efs": "new", "ami": "ami-1"}),
        "jobs": json.dumps({"worker": {"ec2": {"spot": True}}}),
    }
    expected = expected_state(plan(workers=1), spec(workers=1))
    registry.write(registry.Entry(cluster, str(program), expected, options))  # type: ignore[arg-type]
    request = PolicyRequest(region="us-east-2", new_files=True, spot=True, images=("ami-1",))
    assert printed("--stack", "dev") == document(request)
    assert printed("--stack", "other") == document(PolicyRequest())


def test_all_is_for_everything(program: Path) -> None:
    assert printed("--all", "--region", "us-west-2") == document(everything(region="us-west-2"))


@pytest.mark.parametrize("option", [("--account", "1234"), ("--connectivity", "vpn")])
def test_a_value_that_is_not_valid_is_refused(program: Path, option: tuple[str, str]) -> None:
    with pytest.raises(SpecError):
        CliRunner().invoke(app, ["iam-policy", *option], catch_exceptions=False)


def test_a_policy_that_is_too_long_for_a_managed_one_is_reported(program: Path) -> None:
    place = ("--region", "us-west-2", "--account", "123456789012")
    assert CliRunner().invoke(app, ["iam-policy", *place, "--efs", "new"]).stderr == ""
    assert "longer than a managed policy" in CliRunner().invoke(app, ["iam-policy", *place, "--all"]).stderr


def test_the_role_of_ones_own_profile_is_named(program: Path) -> None:
    result = CliRunner().invoke(app, ["iam-policy", "--instance-profile", "mine"])
    assert "also called mine" in result.stderr
