"""The watchdog's loop on a machine that is made up, whose clock a test turns: what it remembers, what it does to the machine, and
what its settings are. The machine that manages the Swarm goes last, and not without the record."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.ec2.s3 import REGION
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.ec2.watchdog import main
from tfdeploy.backends.ec2.watchdog.docker_api import EngineState, LocalEngine
from tfdeploy.backends.ec2.watchdog.instance_metadata import Metadata
from tfdeploy.backends.ec2.watchdog.main import DEFAULTS, Watchdog, read_settings

SETTINGS: dict[str, Any] = {**main.DEFAULTS, "lifetime": 1000, "idle": 100, "boot": 300, "region": REGION}
QUIET, TWO_HERE = EngineState(0, 0, False, 0), EngineState(2, 0, False, 0)
MANAGER = EngineState(0, 0, True, 0)


class FakeEngine(LocalEngine):
    """Sees what it is told to; None is silence."""

    def __init__(self) -> None:
        self.seen: EngineState | None = QUIET
        self.cut_off = 0
        """The tasks on machines that do not respond."""
        self.folder: Path | None = None

    def observe(self, is_over: bool) -> EngineState:
        if self.seen is None:
            raise ConnectionRefusedError("no engine")
        return self.seen if is_over else self.seen._replace(elsewhere=self.seen.elsewhere + self.cut_off)

    def record(self) -> Path | None:
        return self.folder


class FakeMetadata(Metadata):
    def __init__(self) -> None:
        self.told: tuple[str, float] | None = None

    def notice(self) -> tuple[str, float] | None:
        return self.told


class Machine:
    """A machine of which one may say what time it is."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        self.engine, self.about = FakeEngine(), FakeMetadata()
        self.start = self.now = 1_000_000_000.0
        self.shutdowns = 0
        for name in ("state", "shown"):
            (folder / name).mkdir()
        for name, path in (("STATE", "state"), ("SHOWN", "shown"), ("CONSOLE", "console")):
            patch.setattr(main, name, folder / path)
        patch.setattr(time, "time", lambda: self.now)
        patch.setattr(time, "monotonic", lambda: self.now)
        patch.setattr(subprocess, "run", self.run)
        patch.setattr(main, "block_metadata", lambda ssm: None)
        patch.setattr(Path, "touch", lambda path, **_: self.touch(path))
        self.touch(folder / "state" / "born")
        self.ready()

    def touch(self, path: Path) -> None:
        path.write_text("")
        os.utime(path, (self.now, self.now))

    def ready(self) -> None:
        self.touch(self.folder / "state" / "ready")

    def run(self, command: list[str], check: bool) -> None:
        assert not check
        self.shutdowns += command == ["shutdown", "-P", "now"]

    def watchdog(self, **changed: Any) -> Watchdog:
        return Watchdog({**SETTINGS, **changed}, self.engine, self.about)

    def after(self, seconds: float, watchdog: Watchdog, tick: float = main.TICK) -> bool:
        """Look every five seconds, or as often as said, for so long; whether it has shut down."""
        end = self.now + seconds
        while self.now < end and not self.shutdowns:
            self.now += tick
            watchdog.tick()
        return bool(self.shutdowns)

    @property
    def console(self) -> str:
        path = self.folder / "console"
        return path.read_text() if path.exists() else ""

    @property
    def notice(self) -> str:
        path = self.folder / "shown" / "notice"
        return path.read_text() if path.exists() else ""


class Uploads:
    """Stands in for the bucket."""

    def __init__(self, machine: Machine) -> None:
        self.works = True
        self.lists: list[float] = []
        machine.patch.setattr("tfdeploy.backends.ec2.watchdog.main.S3Folder", lambda *_: self)
        self.machine = machine

    def put(self, key: str, body: bytes) -> None:
        if not self.works:
            raise OSError("S3 is away")
        if key == "record/current.json":
            self.lists.append(self.machine.now)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize(("seen", "seconds", "rest"), [(QUIET, 95, 5), (None, 1_890, 10)])
def test_a_machine_whose_tasks_have_ended_or_whose_engine_stays_silent_ends_after_its_idle_time(
    machine: Machine, seen: EngineState | None, seconds: float, rest: float
) -> None:
    care = machine.watchdog(lifetime=0)
    machine.engine.seen = TWO_HERE
    assert not machine.after(200, care)
    machine.engine.seen = seen
    assert not machine.after(seconds, care)
    assert machine.after(rest, care)
    assert machine.console == "tfdeploy: ends: idle for 100 s\n"
    assert machine.notice == ""


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
