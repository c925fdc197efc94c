"""The script that `pulumi up` runs on a machine: other limits of its watchdog, and the users' keys."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfdeploy.backends.ec2 import swarm

CREATED = {"lifetime": 3600.0, "idle": 900.0, "bucket": "records"}


class Machine:
    """The files of a machine below a folder, and a `systemctl` that counts its calls."""

    def __init__(self, folder: Path) -> None:
        self.settings = folder / "etc/watchdog.json"
        self.created = folder / "lib/settings.json"
        self.keys = folder / "home/.ssh/authorized_keys"
        self._calls = folder / "calls"
        systemctl = folder / "bin/systemctl"
        for path in (self.settings, self.created, self.keys, systemctl, folder / "state/expected"):
            path.parent.mkdir(parents=True, exist_ok=True)
        self.settings.write_text(json.dumps(CREATED))
        self.created.write_text(json.dumps(CREATED))
        self.keys.write_text("ssh-ed25519 AAAA ada\n")
        systemctl.write_text(f'#!/bin/sh\necho "$@" >>{self._calls}\n')
        systemctl.chmod(0o755)
        self._path = f"{systemctl.parent}:{os.environ['PATH']}"
        self._script = (
            swarm._UPDATE_MACHINE.replace("/etc/tfdeploy", str(folder / "etc"))
            .replace("/usr/local/lib/tfdeploy", str(folder / "lib"))
            .replace("/var/lib/tfdeploy", str(folder / "state"))
            .replace('pwd.getpwnam(os.environ["SUDO_USER"]).pw_dir', repr(str(folder / "home")))
        )

    def update(self, lifetime: float, *keys: str) -> int:
        """Run the script; its exit code."""
        command = [sys.executable, "-c", self._script, str(lifetime), "900", *keys]
        environment = {**os.environ, "PATH": self._path}
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode

    def read(self) -> dict[str, Any]:
        """The watchdog's settings."""
        settings: dict[str, Any] = json.loads(self.settings.read_text())
        return settings

    def restarts(self) -> int:
        """How often the watchdog was restarted."""
        return len(self._calls.read_text().splitlines()) if self._calls.exists() else 0


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_other_limits_are_written_and_the_watchdog_is_restarted(machine: Machine) -> None:
    assert machine.update(7200.0) == 0
    assert machine.read() == {**CREATED, "lifetime": 7200.0}
    assert machine.restarts() == 1
    assert machine.update(7200.0) == 0
    assert machine.restarts() == 1, "nothing has changed"


def test_a_full_disk_leaves_the_settings_whole(machine: Machine) -> None:
    machine.settings.with_suffix(".draft").symlink_to("/dev/full")
    assert machine.update(7200.0) != 0
    assert (machine.read(), machine.restarts()) == (CREATED, 0)


@pytest.mark.parametrize("damaged", ["", '{"lifetime": 36', "\0" * 40])
def test_damaged_settings_are_replaced_by_those_of_the_creation(machine: Machine, damaged: str) -> None:
    machine.settings.write_text(damaged)
    machine.created.write_text(json.dumps({**CREATED, "lifetime": 1.0}))
    assert machine.update(7200.0) == 0
    assert machine.read() == {**CREATED, "lifetime": 7200.0}


def test_a_key_is_added_once(machine: Machine) -> None:
    for _ in range(2):
        assert machine.update(3600.0, "ssh-ed25519 AAAA ada", "ssh-ed25519 BBBB ben") == 0
    assert machine.keys.read_text() == "ssh-ed25519 AAAA ada\nssh-ed25519 BBBB ben\n"
    assert machine.restarts() == 0
