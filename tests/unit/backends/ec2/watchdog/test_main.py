"""The watchdog's loop on a machine that is made up: what it remembers, what it does to the machine, and what its settings are."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.ec2.watchdog.made_up_machine import QUIET, TWO_HERE, Machine
from tfdeploy.backends.ec2.watchdog import main
from tfdeploy.backends.ec2.watchdog.docker_api import EngineState
from tfdeploy.backends.ec2.watchdog.main import DEFAULTS, read_settings
from tfdeploy.spec.ec2 import Ec2Spec


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_machine_whose_tasks_have_ended_ends_after_its_idle_time(machine: Machine) -> None:
    care = machine.watchdog()
    machine.engine.seen = TWO_HERE
    assert not machine.after(200, care)
    machine.engine.seen = QUIET
    assert not machine.after(95, care)
    assert machine.after(5, care)
    assert machine.console == "tfdeploy: ends: idle for 100 s\n"
    assert machine.notice == ""


def test_a_task_that_comes_and_goes_between_two_looks_has_come(machine: Machine) -> None:
    care = machine.watchdog()
    machine.engine.seen = QUIET._replace(last=machine.now)
    assert not machine.after(95, care)
    assert machine.after(50, care)


def test_a_machine_that_is_told_that_tasks_come_waits_for_the_first(machine: Machine) -> None:
    care = machine.watchdog()
    machine.engine.seen = TWO_HERE
    machine.after(5, care)
    machine.engine.seen = QUIET
    machine.touch(main.STATE / "expected")
    assert not machine.after(900, care)


def test_a_task_elsewhere_keeps_the_manager(machine: Machine) -> None:
    care = machine.watchdog()
    machine.engine.seen = EngineState(0, 1, True, 1)
    assert not machine.after(500, care)


def test_an_engine_that_stays_silent_is_idle_in_the_end(machine: Machine) -> None:
    care = machine.watchdog(lifetime=0)
    machine.engine.seen = TWO_HERE
    machine.after(5, care)
    machine.engine.seen = None
    assert not machine.after(1_890, care)
    assert machine.after(10, care)
    assert machine.console == "tfdeploy: ends: idle for 100 s\n"


def test_a_disk_that_is_full_keeps_no_machine(machine: Machine) -> None:
    def full(path: Path, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    machine.patch.setattr(Path, "touch", full)
    machine.patch.setattr(Path, "write_text", full)
    machine.engine.seen = TWO_HERE
    care = machine.watchdog()
    assert not machine.after(995, care)
    assert machine.after(150, care)


def test_the_metadata_are_closed_again_and_again(machine: Machine) -> None:
    care = machine.watchdog()
    machine.after(180, care)
    assert machine.blocked == [machine.start + 5, machine.start + 65, machine.start + 125]


def test_the_guard_of_the_boot_is_taken_away_once(machine: Machine) -> None:
    for _ in range(2):
        main.cancel_boot_guard()
    assert machine.cancelled == 1


def test_what_is_remembered_outlives_the_watchdog(machine: Machine) -> None:
    machine.engine.seen = TWO_HERE
    machine.after(5, machine.watchdog())
    machine.engine.seen = QUIET
    assert not machine.after(50, machine.watchdog())
    assert machine.after(100, machine.watchdog())


def test_a_machine_that_was_off_for_long_waits_for_its_tasks_again(machine: Machine) -> None:
    machine.engine.seen = TWO_HERE
    machine.after(5, machine.watchdog())
    machine.engine.seen = QUIET
    machine.now += 400
    assert not machine.after(95, machine.watchdog())


def test_a_lifetime_is_counted_from_the_first_boot_and_tasks_are_told(machine: Machine) -> None:
    machine.engine.seen = TWO_HERE
    assert not machine.after(400, machine.watchdog())
    care = machine.watchdog()
    assert not machine.after(600, care)
    assert machine.notice == "max_lifetime of 1000 s is over\n"
    machine.engine.seen = QUIET
    assert machine.after(5, care)
    assert machine.now == machine.start + 1005


def test_a_watchdog_that_comes_late_gives_tasks_their_time(machine: Machine) -> None:
    machine.engine.seen = TWO_HERE
    machine.now += 2000
    care = machine.watchdog()
    assert not machine.after(110, care)
    assert machine.notice == "max_lifetime of 1000 s is over\n"
    assert machine.after(30, care)


def test_a_boot_that_fails_ends_itself_without_an_engine(machine: Machine) -> None:
    (machine.folder / "state" / "ready").unlink()
    machine.engine.seen = None
    care = machine.watchdog()
    assert not machine.after(295, care)
    assert machine.after(5, care)
    assert machine.console == "tfdeploy: ends: boot failed: not ready after 300 s\n"


def test_a_spot_notice_reaches_the_tasks_and_then_it_ends(machine: Machine) -> None:
    machine.engine.seen = TWO_HERE
    care = machine.watchdog(spot=True)
    assert not machine.after(50, care)
    machine.about.told = ("spot instance is taken away at …", machine.now + 120)
    assert not machine.after(30, care)
    assert machine.notice == "spot instance is taken away at …\n"
    machine.about.told = None
    machine.engine.seen = QUIET
    assert machine.after(5, care)


def test_a_machine_on_demand_asks_for_no_notice(machine: Machine) -> None:
    machine.after(50, machine.watchdog())
    assert machine.about.asked == 0


def test_the_same_complaint_is_made_once(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    machine.engine.seen = None
    machine.after(50, machine.watchdog())
    assert capfd.readouterr().err == "tfdeploy: engine: ConnectionRefusedError('no engine')\n"


def test_a_notice_of_before_is_gone_when_the_machine_starts(machine: Machine) -> None:
    closed: list[bool] = []
    machine.patch.setattr(main, "block_metadata", closed.append)
    (machine.folder / "shown" / "notice").write_text("old")
    for _ in range(2):
        main.prepare({"ssm": True})
    assert (machine.notice, closed) == ("", [True, True])


CREATED = {**DEFAULTS, "lifetime": 3600.0, "bucket": "records"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(main, "SETTINGS", tmp_path / "present")
    monkeypatch.setattr(main, "CREATED_WITH", tmp_path / "created")
    (tmp_path / "present").write_text(json.dumps({**CREATED, "lifetime": 7200.0}))
    (tmp_path / "created").write_text(json.dumps(CREATED))
    return tmp_path


def read() -> dict[str, Any]:
    said: list[str] = []
    found = read_settings(said.append)
    return {**found, "said": len(said)}


def test_the_present_settings_are_read(files: Path) -> None:
    assert read() == {**CREATED, "lifetime": 7200.0, "said": 0}


@pytest.mark.parametrize("text", ["", '{"lifetime": 36', "[1]", "\0\0\0", '{"lifetime": null}', '{"idle": "soon"}'])
def test_what_cannot_be_read_is_as_the_machine_was_created(files: Path, text: str) -> None:
    (files / "present").write_text(text)
    assert read() == {**CREATED, "said": 1}
    (files / "created").write_text(text)
    assert read() == {**DEFAULTS, "said": 2}


def test_without_any_file_the_arguments_own_defaults_hold(files: Path) -> None:
    for name in ("present", "created"):
        (files / name).unlink()
    found = read()
    assert (found["lifetime"], found["idle"]) == (Ec2Spec.max_lifetime, Ec2Spec.idle_timeout)
