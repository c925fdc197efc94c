"""What `doctor` makes of what it is told."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdeploy.backends.base import FAIL, OK, WARN, Check
from tfdeploy.backends.local.discover import network_check
from tfdeploy.backends.parallel_calls import call_in_parallel
from tfdeploy.cli.commands import doctor
from tfdeploy.cli.commands.doctor import check_rows
from tfdeploy.errors import SpecError


def test_packages_that_are_missing_and_answers_that_do_not_come_are_lines_too() -> None:
    error = SpecError("backend", "'ec2' needs boto3", "pip install 'pulumi-tfdeploy[ec2]'.")
    (line,) = check_rows("ec2", "ec2", error, "ec2")
    assert line.check == Check("ec2", FAIL, "'ec2' needs boto3", "pip install 'pulumi-tfdeploy[ec2]'.")
    (late,) = check_rows("", "pulumi", TimeoutError("no answer within 1 s"), "local")
    assert (late.check.state, late.check.detail) == (FAIL, "no answer within 1 s")


def test_one_that_does_not_answer_keeps_no_other_waiting() -> None:
    gate = threading.Event()
    calls: dict[str, Callable[[], object]] = {"never": gate.wait, "soon": lambda: None, "no": Path("/none").stat}
    answers = call_in_parallel(calls, 0.5)
    gate.set()
    assert isinstance(answers["never"], TimeoutError)
    assert answers["soon"] is None
    assert isinstance(answers["no"], FileNotFoundError)


def test_an_address_that_others_can_reach_is_warned_of() -> None:
    assert network_check(["127.0.0.1"]).state == OK
    private = network_check(["127.0.0.1", "10.0.0.2"])
    assert (private.state, "no access control" in private.detail) == (WARN, True)
    assert private.remedy.startswith("On a network that you do not trust, put a firewall")
    warned = network_check(["127.0.0.1", "8.8.8.8"])
    assert (warned.state, warned.remedy) == (WARN, "Put a firewall before the ports 20000 to 31999.")


def test_a_state_folder_that_others_can_enter_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert [one.state for one in doctor.check_state_folder()][1] == OK
    folder = tmp_path / "tfdeploy"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    failed = doctor.check_state_folder()[1]
    assert (failed.state, failed.remedy) == (FAIL, f"chmod 700 {folder}")


def test_a_stack_without_a_passphrase_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE", raising=False)
    file = tmp_path / "Pulumi.yaml"
    assert doctor.check_passphrase(file, "dev").state == WARN
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(tmp_path / "none"))
    assert doctor.check_passphrase(file, "dev").state == FAIL
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "")
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE_FILE")
    assert doctor.check_passphrase(file, "dev").state == OK
    (tmp_path / "Pulumi.dev.yaml").write_text("secretsprovider: awskms://alias/x\n")
    assert doctor.check_passphrase(file, "dev").detail == "the stack's secrets are encrypted by awskms://alias/x"
