"""What the smoke test writes down, and that it destroys whatever happens."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.unit.backends.ec2.moto_account import moto_account
from tools.smoke import __main__ as smoke
from tools.smoke.call_log import CallLog
from tools.smoke.commands import Commands
from tools.smoke.findings import Step, redacted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arn:aws:iam::123456789012:role/x", "arn:aws:iam::<account>:role/x"),
        ("s3://tfdeploy-123456789012-us-west-2/a", "s3://tfdeploy-<account>-us-west-2/a"),
        ("account 123456789012.", "account 123456789012."),
        ("account 123456789012", "account <account>"),
        ("AKIAIOSFODNN7EXAMPLE and ASIAIOSFODNN7EXAMPLE", "<key> and <key>"),
        ("ssh-ed25519 AAAAC3Nz+/= me", "ssh-ed25519 AAAAC3Nz+/= me".replace("ssh-ed25519 AAAAC3Nz+/=", "<ssh key>")),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----", "<private key>"),
        ("203.0.113.7/32 ip-172-31-0-5.internal", "<address> <host>.internal"),
        ("2001:db8:0:1:2:3:4:5", "<address>"),
        ("me@example.org in /home/me/x", "<mail> in <redacted>/x"),
        ("after 03:55:22, 1763900000 and 1763900000123", "after 03:55:22, 1763900000 and 1763900000123"),
    ],
)
def test_what_identifies_somebody_is_left_out(text: str, expected: str) -> None:
    assert redacted(text, ["/home/me"]) == expected


class Fake(Commands):
    """Commands that are not run."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        super().__init__(Path(), {})
        self._fail = fail

    def run(self, *command: str, shown: bool = True) -> Step:
        text = " ".join(command)
        step = Step(text, 0.0, 0, json.dumps({"leftovers": []}) if "leftovers" in text else "")
        self.steps.append(step)
        self._fail(text)
        return self.steps[-1]


def interrupted(text: str) -> None:
    if text.startswith("pulumi up"):
        raise KeyboardInterrupt


def broken(text: str) -> None:
    if text.startswith("pulumi up"):
        raise OSError("no such command")


@pytest.mark.parametrize(("fail", "problem"), [(interrupted, "interrupted"), (broken, "no such command")])
def test_the_cluster_is_destroyed_whatever_happens(
    fail: Callable[[str], None], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Fake(fail)
    chosen = smoke.options(
        ["--yes", "--region", "us-west-2", "--ssh-cidr", "203.0.113.7/32", "--folder", str(tmp_path)]
    )
    with moto_account(tmp_path, monkeypatch):
        run = smoke.Smoke(chosen, commands, CallLog())
        assert not run.run()
    names = [step.command.split()[1] for step in commands.steps]
    assert names[names.index("up") :] == ["up", "cancel", "destroy", "ls"]
    assert problem in run.text([])


def test_nothing_is_created_without_consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with moto_account(tmp_path, monkeypatch):
        assert smoke.main(["--region", "us-west-2", "--folder", str(tmp_path / "smoke")]) == 2
    assert not (tmp_path / "smoke").exists()


def folder_options(folder: Path, *more: str) -> smoke.Options:
    report = ["--report", str(folder.with_suffix(".txt"))]
    return smoke.options(
        ["--region", "us-west-2", "--ssh-cidr", "203.0.113.7/32", "--folder", str(folder), *report, *more]
    )


def stack_file(folder: Path, latest: dict[str, Any]) -> Path:
    file = folder / "state/.pulumi/stacks/aws-smoke/smoke.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"version": 3, "checkpoint": {"stack": "smoke", "latest": latest}}))
    return file


@pytest.mark.parametrize("latest", [{"resources": [{"urn": "u"}]}, {"pending_operations": [{"type": "creating"}]}])
def test_the_state_of_a_cluster_that_exists_is_not_deleted(
    latest: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "smoke"
    smoke.prepare(folder_options(folder))
    file = stack_file(folder, latest)
    assert smoke.main(["--yes", "--region", "us-west-2", "--folder", str(folder)]) == 2
    error = capsys.readouterr().err
    assert (
        f"cd {folder}/program && export PULUMI_BACKEND_URL=file://{folder}/state PULUMI_CONFIG_PASSPHRASE=''" in error
    )
    assert "pulumi destroy --yes --stack smoke" in error
    assert file.exists()


def test_the_report_is_written_when_aws_refuses_and_names_no_alias(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(text: str) -> None:
        if text.startswith("pulumi destroy"):
            commands.steps[-1] = Step(text, 0.0, 1, "AWS account 123456789012 (my-company-prod)")

    def refuse(_smoke: smoke.Smoke) -> None:
        raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "DescribeInstances")

    commands, chosen = Fake(fail), folder_options(tmp_path / "smoke")
    monkeypatch.setattr(smoke, "Commands", lambda *_: commands)
    monkeypatch.setattr(smoke.Smoke, "_list_tagged", refuse)
    arguments = ["--yes", "--region", "us-west-2", "--folder", str(chosen.folder), "--report", str(chosen.report)]
    with moto_account(tmp_path, monkeypatch):
        boto3.client("iam", region_name="us-west-2").create_account_alias(AccountAlias="my-company-prod")
        assert smoke.main([*arguments, "--ssh-cidr", "203.0.113.7/32"]) == 1
    report = chosen.report.read_text()
    assert "`pulumi destroy` failed" in report
    assert "ExpiredToken" in report
    assert "my-company-prod" not in report
    assert f"cd {chosen.folder}/program" in capsys.readouterr().out
