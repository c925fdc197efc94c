"""The services of a machine, kept by files and process ids: systemd's units of the image, and those of unit files."""

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.box.image import unit_files
from tests.box.image.unit_files import BadUnit, UnitFile

RUN = Path("/run/box")
DISABLED = Path("/etc/box/disabled")
SETTINGS = Path("/box/machine/settings.json")
SOCKET = "/run/docker.sock"
STARTED_WITHIN = 60.0
STOPPED_WITHIN = 90.0
ALIASES = {"ssh": "sshd"}


class StartFailed(Exception):
    """A service has ended while it started, or is not ready in time."""


def settings() -> dict[str, Any]:
    """What the box says of this machine: its cgroup, the registry that its engine trusts."""
    found: dict[str, Any] = json.loads(SETTINGS.read_text())
    return found


def _dockerd() -> list[str]:
    known = settings()
    flags = [f"--cgroup-parent=/{known['cgroup']}", f"--insecure-registry={known['registry']}"]
    return ["dockerd", f"--host=unix://{SOCKET}", *flags]


def _engine_answers() -> bool:
    with socket.socket(socket.AF_UNIX) as caller, suppress(OSError):
        caller.connect(SOCKET)
        caller.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
        return b" 200 " in caller.recv(64)
    return False


@dataclass(frozen=True)
class Unit:
    """A service: its command, and how one sees that it is ready."""

    command: Callable[[], list[str]]
    ready: Callable[[], bool] = lambda: True


UNITS = {
    "docker": Unit(_dockerd, _engine_answers),
    "sshd": Unit(lambda: ["/usr/sbin/sshd", "-D"]),
    "ecs": Unit(lambda: ["sleep", "infinity"]),
    # Nothing is started by who asks there: stopped or not, the engine listens itself.
    "docker.socket": Unit(lambda: ["sleep", "infinity"]),
}


def known() -> list[str]:
    """All units that there are."""
    return [*UNITS, *(name for name in unit_files.names() if name not in UNITS)]


def started_at_boot() -> tuple[list[str], list[str]]:
    """The enabled units of unit files: those that start before the engine, and the others."""
    early: list[str] = []
    late: list[str] = []
    for name in unit_files.names():
        if enabled(name):
            (early if "docker" in _before(name) else late).append(name)
    return early, late


def stopped_at_shutdown() -> list[str]:
    """All units, in the order in which they end: as systemd's, the reverse of how they start."""
    files = unit_files.names()
    early = [name for name in files if "docker" in _before(name)]
    return [*(name for name in files if name not in early), "ecs", "docker", "docker.socket", *early, "sshd"]


def pause(name: str) -> float | None:
    """The seconds after which a unit that has ended starts again; None when it does not."""
    if name in UNITS:
        return 0.1
    with suppress(BadUnit, OSError):
        unit = unit_files.read(name)
        return unit.pause if unit.restarts else None
    return None


def _before(name: str) -> frozenset[str]:
    with suppress(BadUnit, OSError):
        return unit_files.read(name).before
    return frozenset()


def named(text: str) -> str:
    """The unit that systemd would mean."""
    name = text.removesuffix(".service")
    return ALIASES.get(name, name)


def pid(name: str) -> int | None:
    """The process id of a unit that runs."""
    with suppress(OSError, ValueError):
        found = int((RUN / f"{name}.pid").read_text())
        os.kill(found, 0)
        return found
    return None


def start(name: str) -> None:
    """Start a unit and wait until it is ready; nothing where it runs."""
    with _lock(name):
        _start(name)


def stop(name: str) -> None:
    """Stop a unit and wait for its end."""
    with _lock(name):
        _stop(name)


def restart(name: str) -> None:
    """Stop, then start."""
    with _lock(name):
        _stop(name)
        _start(name)


def reload(name: str) -> None:
    """Have a unit read its configuration again."""
    if found := pid(name):
        os.kill(found, signal.SIGHUP)


def enabled(name: str) -> bool:
    """Whether the unit starts at boot."""
    return not (DISABLED / name).exists() if name in UNITS else (unit_files.WANTED / f"{name}.service").exists()


def enable(name: str) -> None:
    """Let the unit start at boot."""
    if name in UNITS:
        (DISABLED / name).unlink(missing_ok=True)
        return
    unit_files.WANTED.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (unit_files.WANTED / f"{name}.service").symlink_to(unit_files.FOLDER / f"{name}.service")


def disable(name: str) -> None:
    """Do not let the unit start at boot."""
    (unit_files.WANTED / f"{name}.service").unlink(missing_ok=True)
    if name in UNITS:
        DISABLED.mkdir(parents=True, exist_ok=True)
        (DISABLED / name).touch()


@contextmanager
def _lock(name: str) -> Iterator[None]:
    RUN.mkdir(parents=True, exist_ok=True)
    with (RUN / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start(name: str) -> None:
    if pid(name):
        return
    with Path(f"/var/log/{name}.log").open("ab") as log:
        if name in UNITS:
            _start_own(name, log)
        else:
            _start_file(name, log)


def _start_own(name: str, log: IO[bytes]) -> None:
    unit = UNITS[name]
    process = subprocess.Popen(
        unit.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
    )
    (RUN / f"{name}.pid").write_text(str(process.pid))
    deadline = time.monotonic() + STARTED_WITHIN
    while not unit.ready():
        if process.poll() is not None or time.monotonic() > deadline:
            _stop(name)
            raise StartFailed(name)
        time.sleep(0.05)


def _start_file(name: str, log: IO[bytes]) -> None:
    """Its commands in order; only the last of them is the service."""
    try:
        unit = unit_files.read(name)
        with Path("/dev/console").open("ab") if unit.console else log as output:
            for may_fail, command in unit.before_all:
                if _spawn(unit, command, output).wait() != 0 and not may_fail:
                    raise StartFailed(f"{name}: {' '.join(command)}")
            process = _spawn(unit, unit.command, output)
    except (BadUnit, OSError) as error:
        log.write(f"{name}: {error}\n".encode())
        raise StartFailed(f"{name}: {error}") from error
    if not unit.oneshot:
        (RUN / f"{name}.pid").write_text(str(process.pid))
    elif process.wait() != 0:
        raise StartFailed(name)


def _spawn(unit: UnitFile, command: list[str], output: IO[bytes]) -> "subprocess.Popen[bytes]":
    """As systemd does: from the root folder, with no more than a path and what the file says."""
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8", **unit.environment}
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        cwd="/",
        env=environment,
    )


def _stop(name: str) -> None:
    found = pid(name)
    # Without this file its end is meant: init does not start it again.
    (RUN / f"{name}.pid").unlink(missing_ok=True)
    if not found:
        return
    with suppress(ProcessLookupError):
        watched = os.pidfd_open(found)
        os.kill(found, signal.SIGTERM)
        if not select.select([watched], [], [], STOPPED_WITHIN)[0]:
            os.kill(found, signal.SIGKILL)
            select.select([watched], [], [])
        os.close(watched)
    if name not in UNITS:
        # What it has started and left goes too: `KillMode=control-group`.
        with suppress(ProcessLookupError):
            os.killpg(found, signal.SIGKILL)
