"""A provider of the program's own, by the real engine: it is asked who it is, and another account is refused."""

from pathlib import Path

import pytest

from tests.box.aws_project import AwsProject
from tests.ec2.preparing import REGION, logged_in

pytestmark = pytest.mark.full

ACCOUNT, OTHER = "123456789012", "210987654321"
PROGRAM = """\
import os
import pulumi
import pulumi_aws as aws
from tfdeploy import TensorFlowCluster

role = os.environ.get("ROLE")
allowed = os.environ.get("ALLOWED")
mine = aws.Provider(
    "mine",
    region="us-east-2",
    allowed_account_ids=[allowed] if allowed else [],
    assume_roles=[aws.ProviderAssumeRoleArgs(role_arn=role)] if role else [],
)
made = aws.ec2.KeyPair("made", public_key="ssh-ed25519 AAAA", opts=pulumi.ResourceOptions(provider=mine))
known = pulumi.Output.from_input("a value").apply(str.upper)
for name, text in (("at-once", "a value"), ("awaited", known)):
    TensorFlowCluster(name, {arguments}, env={"VALUE": text}, opts=pulumi.ResourceOptions(providers=[mine]))
"""


def test_the_provider_of_the_program_is_asked_who_it_is(
    moto_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logged_in(moto_endpoint, tmp_path, monkeypatch):
        project = AwsProject(tmp_path / "project")
        del project.env["AWS_REGION"]
        ec2 = {"instance_type": "m7i.large", "ssh_cidrs": ["203.0.113.7/32"], "efs": "new"}
        ec2["ssh_public_key"] = f"{tmp_path}/key.pub"
        arguments = f'backend="ec2", command=["python", "/opt/train.py"], workers=1, ec2={ec2!r}'
        project.write(arguments, program=PROGRAM)
        project.init()

        preview = project.call("preview", "--stack", project.stack)
        assert preview.exit_code == 0, preview.output
        for name in ("at-once", "awaited"):
            assert f"{name} on ec2 (beta): " in preview.output
            assert f"aws:ec2:Instance                                {name}-worker-m0" not in preview.output
        assert preview.output.count(f"AWS account {ACCOUNT} in {REGION}") == 2
        assert preview.output.count("pulumi:providers:aws") == 1

        refused = project.call("preview", "--stack", project.stack, env={"ROLE": f"arn:aws:iam::{OTHER}:role/deploy"})
        assert refused.exit_code != 0
        why = f"Pulumi's AWS provider uses the account {OTHER}, but tfdeploy's own calls use {ACCOUNT}"
        assert why in refused.output, refused.output

        failed = project.call("preview", "--stack", project.stack, env={"ALLOWED": OTHER})
        assert failed.exit_code != 0
        assert f"AWS account ID not allowed: {ACCOUNT}" in failed.output, failed.output
        project.end_provider()
