"""A machine that a watchdog takes care of, made up: a test says what it sees, and turns its clock."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.ec2.s3 import REGION
from tfdeploy.backends.ec2.watchdog import main
from tfdeploy.backends.ec2.watchdog.docker_api import EngineState, LocalEngine
from tfdeploy.backends.ec2.watchdog.instance_metadata import Metadata
from tfdeploy.backends.ec2.watchdog.main import Watchdog

SETTINGS: dict[str, Any] = {
    "lifetime": 1000,
    "idle": 100,
    "boot": 300,
    "spot": False,
    "region": REGION,
    "bucket": "",
    "folder": "",
    "endpoint": "",
    "ssm": False,
}
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
        self.asked = 0

    def notice(self) -> tuple[str, float] | None:
        self.asked += 1
        return self.told


class Machine:
    """A machine of which one may say what time it is."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        self.engine, self.about = FakeEngine(), FakeMetadata()
        self.start = self.now = 1_000_000_000.0
        self.shutdowns = self.cancelled = 0
        self.blocked: list[float] = []
        for name in ("state", "shown"):
            (folder / name).mkdir()
        for name, path in (("STATE", "state"), ("SHOWN", "shown"), ("CONSOLE", "console")):
            patch.setattr(main, name, folder / path)
        patch.setattr(time, "time", lambda: self.now)
        patch.setattr(time, "monotonic", lambda: self.now)
        patch.setattr(subprocess, "run", self.run)
        patch.setattr(main, "block_metadata", lambda ssm: self.blocked.append(self.now))
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
        self.cancelled += command == ["shutdown", "-c"]

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
