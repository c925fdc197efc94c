"""The watchdog's loop on a machine that is made up: what it remembers, what it does to the machine, and what its settings are."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.ec2.watchdog.made_up_machine import QUIET, TWO_HERE, Machine
from tfdeploy.backends.ec2.watchdog import main
from tfdeploy.backends.ec2.watchdog.main import DEFAULTS, read_settings


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


def test_an_engine_that_stays_silent_is_idle_in_the_end(machine: Machine) -> None:
    care = machine.watchdog(lifetime=0)
    machine.engine.seen = TWO_HERE
    machine.after(5, care)
    machine.engine.seen = None
    assert not machine.after(1_890, care)
    assert machine.after(10, care)
    assert machine.console == "tfdeploy: ends: idle for 100 s\n"


def test_a_lifetime_is_counted_from_the_first_boot_and_tasks_are_told(machine: Machine) -> None:
    machine.engine.seen = TWO_HERE
    assert not machine.after(400, machine.watchdog())
    care = machine.watchdog()
    assert not machine.after(600, care)
    assert machine.notice == "max_lifetime of 1000 s is over\n"
    machine.engine.seen = QUIET
    assert machine.after(5, care)
    assert machine.now == machine.start + 1005


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


@pytest.mark.parametrize("text", ["", '{"lifetime": 36', "[1]", "\0\0\0", '{"lifetime": null}', '{"idle": "soon"}'])
def test_what_cannot_be_read_is_as_the_machine_was_created(files: Path, text: str) -> None:
    (files / "present").write_text(text)
    assert read() == {**CREATED, "said": 1}
    (files / "created").write_text(text)
    assert read() == {**DEFAULTS, "said": 2}
