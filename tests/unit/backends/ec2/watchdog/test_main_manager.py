"""The watchdog of the machine that manages the Swarm: it goes last, and not without the record."""

import json
from pathlib import Path

import pytest

from tests.unit.backends.ec2.watchdog.made_up_machine import MANAGER, Machine, Uploads
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.ec2.watchdog.main import Watchdog


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


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
