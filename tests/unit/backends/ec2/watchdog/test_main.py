"""The watchdog's loop on a machine that is made up: what it remembers, what it does to the machine, and what its settings are.
The machine that manages the Swarm goes last, and not without the record."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.ec2.watchdog.made_up_machine import MANAGER, QUIET, TWO_HERE, Machine, Uploads
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.ec2.watchdog import main
from tfdeploy.backends.ec2.watchdog.main import DEFAULTS, Watchdog, read_settings


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


@pytest.fixture
def uploads(machine: Machine) -> Uploads:
    machine.engine.folder = machine.folder / "record"
    machine.engine.folder.mkdir()
    (machine.engine.folder / "record_id").write_text("record_id")
    return Uploads(machine)


def idle_manager(machine: Machine) -> Watchdog:
    care = machine.watchdog(bucket="records", lifetime=5000)
    machine.engine.seen = MANAGER._replace(tasks=1)
    machine.after(5, care)
    machine.engine.seen = MANAGER
    assert not machine.after(95, care)
    return care


def happen(machine: Machine) -> None:
    """Something that is not in the bucket yet."""
    (machine.folder / "record/runs/one").mkdir(parents=True)
    (machine.folder / "record/runs/one/events.jsonl").write_text("news")


def test_the_manager_brings_the_record_before_it_ends(machine: Machine, uploads: Uploads) -> None:
    care = idle_manager(machine)
    happen(machine)
    assert machine.after(15, care)
    assert uploads.lists == [machine.start + 5, machine.start + 105]


def test_a_manager_that_is_cut_off_stays_until_the_run_is_over(machine: Machine, uploads: Uploads) -> None:
    """It has no task of its own, and those of the others are all on machines that do not respond."""
    happen(machine)
    record = machine.folder / "record"
    (record / "current").write_text("one")
    (record / "runs/one/run_state.json").write_text(json.dumps({"result": None}))
    machine.engine.seen = MANAGER._replace(tasks=1)
    care = machine.watchdog(bucket="records", lifetime=0)
    machine.after(5, care)
    machine.engine.seen, machine.engine.cut_off = MANAGER, 2
    assert not machine.after(10_000, care, tick=50)
    (record / "runs/one/run_state.json").write_text(json.dumps({"result": {"state": "succeeded"}}))
    assert not machine.after(95, care)
    assert machine.after(15, care)


def test_an_idle_manager_stays_while_its_record_is_not_safe_and_says_why(machine: Machine, uploads: Uploads) -> None:
    care = idle_manager(machine)
    happen(machine)
    uploads.works = False
    assert not machine.after(2000, care)
    assert "its record cannot be uploaded" in machine.console.splitlines()[0]
    assert Record(machine.folder / "record").upload_problem() == "S3 is away"
    uploads.works = True
    assert machine.after(60, care)
    assert Record(machine.folder / "record").upload_problem() == ""
    assert len(uploads.lists) == 2
