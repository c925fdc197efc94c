"""What the smoke test writes down, and that it destroys whatever happens."""

import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.unit.backends.ec2.moto_account import moto_account
from tests.waiting import until
from tools.smoke import __main__ as smoke
from tools.smoke.call_log import CallLog
from tools.smoke.commands import Commands
from tools.smoke.findings import (
    Step,
    differing_properties,
    redacted,
)

SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"}


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


FACTS = {
    "aws:x:Y": {
        "source": "file@commit",
        "size": "computed",
        "mode": "= bursting",
        "name": "replaces computed",
        "root.type": "computed",
        "key": "required",
    }
}


def resource(inputs: dict[str, Any], outputs: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "aws:x:Y", "urn": "urn:pulumi:s::p::aws:x:Y::mine", "inputs": inputs, "outputs": outputs}]


ALL = {"size": 30.0, "mode": "bursting", "name": "n", "root": {"type": "gp3"}, "key": SECRET}


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        ({"size": 30, "key": SECRET}, ALL, []),
        ({"size": 8}, ALL, ["Y mine: size: given 8, returned 30.0"]),
        ({}, {**ALL, "mode": "elastic"}, ["Y mine: mode: default bursting in the table, returned elastic"]),
        ({}, {**ALL, "name": ""}, []),
        ({"root": {"type": "gp3"}}, {**ALL, "root": {"type": "gp3", "iops": 3000}}, []),
        ({"root": {"type": "gp2"}}, ALL, ["Y mine: root.type: given gp2, returned gp3"]),
    ],
)
def test_properties_are_compared_with_the_inputs_and_the_table(
    inputs: dict[str, Any], outputs: dict[str, Any], expected: list[str]
) -> None:
    assert differing_properties(resource(inputs, outputs), FACTS) == expected


SLEEPER = """\
import time
try:
    print("begun", file=open({begun!r}, "w"), flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("ended well")
"""


def interrupted_step(commands: Commands, program: str, begun: Path) -> Step:
    """The step of a program that gets Ctrl-C when it has written this file."""
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        until(lambda: begun.exists() and begun.read_text(), "it has begun")
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        commands.run(sys.executable, "-c", program.format(begun=str(begun)))
    thread.join()
    (step,) = commands.steps
    return step


def test_a_command_ends_before_ctrl_c_is_raised(tmp_path: Path) -> None:
    step = interrupted_step(Commands(tmp_path, {}), SLEEPER, tmp_path / "begun")
    assert (step.exit_code, step.output) == (0, "ended well\n")


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


STUBBORN = """\
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "300"], process_group=0)
open({begun!r}, "w").write(str(child.pid))
child.wait()
"""


def test_a_command_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    step = interrupted_step(Commands(tmp_path, {}, patience=0.1), STUBBORN, begun)
    assert step.exit_code == -signal.SIGKILL
    child = Path(f"/proc/{begun.read_text()}/stat")
    until(lambda: not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z", "the child is killed")


def test_a_signal_while_a_command_is_started_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> "subprocess.Popen[str]":
        process = start(*arguments, **options)
        signal.raise_signal(signal.SIGINT)
        return process

    commands = Commands(tmp_path, {})
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        commands.run("sleep", "300")
    (step,) = commands.steps
    assert step.exit_code == -signal.SIGINT


def folder_options(folder: Path, *more: str) -> smoke.Options:
    report = ["--report", str(folder.with_suffix(".txt"))]
    return smoke.options(
        ["--region", "us-west-2", "--ssh-cidr", "203.0.113.7/32", "--folder", str(folder), *report, *more]
    )


def test_a_folder_with_other_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()
    assert smoke.main(["--yes", "--region", "us-west-2", "--folder", str(tmp_path)]) == 2
    assert "has files that are not of this program" in capsys.readouterr().err
    assert (tmp_path / "mine").exists()


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


def test_a_folder_whose_cluster_is_destroyed_is_used_again(tmp_path: Path) -> None:
    chosen = folder_options(tmp_path / "smoke")
    smoke.prepare(chosen)
    file = stack_file(chosen.folder, {"manifest": {}})
    smoke.refuse_used(chosen)
    smoke.prepare(chosen)
    assert not file.exists()


def unusable_listing(commands: list[Step]) -> Callable[[str], None]:
    def fail(text: str) -> None:
        if "leftovers" in text:
            commands[-1] = Step(text, 0.0, 1, '{"error": "expired"}')

    return fail


def test_a_listing_without_leftovers_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Fake(lambda _text: None)
    commands._fail = unusable_listing(commands.steps)
    with moto_account(tmp_path, monkeypatch):
        run = smoke.Smoke(folder_options(tmp_path), commands, CallLog())
        assert not run.run()
    assert 'leftovers: {"error": "expired"}' in run.text([])


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
