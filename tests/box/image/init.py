"""Process 1 of a machine: boots it, takes in orphans, starts again a service that ended by itself, shuts down."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.box.image import devices, units
from tests.box.image.signals import EXIT_OF_REBOOT, POWER_OFF, REBOOT

SHUTDOWN: dict[int, int] = {signal.SIGTERM: 0, POWER_OFF: 0, signal.SIGINT: EXIT_OF_REBOOT, REBOOT: EXIT_OF_REBOOT}
WATCHED = {signal.SIGCHLD, *SHUTDOWN}
BURST, INTERVAL = 5, 10.0
"""So often in so many seconds a unit starts again by itself: systemd's StartLimitBurst= and StartLimitIntervalSec=."""
LINK_LOCAL = "169.254.169.254"
"""The metadata service, which is on the machine's own link."""


def main() -> int:
    """Run the machine until it is told to shut down; the exit code says whether it is to start again."""
    signals = received()
    prepare()
    spawn(sys.executable, "-m", "tests.box.image.boot")
    restarts: dict[str, list[float]] = {}
    for number in signals:
        if number in SHUTDOWN:
            shut_down()
            return SHUTDOWN[number]
        for ended in reap():
            for name in units.known():
                if was(name, ended):
                    start_again(name, restarts.setdefault(name, []))
    raise AssertionError("signals never end")


def prepare() -> None:
    """What a kernel and systemd have ready before anything else runs."""
    for folder in ("/sys", "/proc/sys"):
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
    # Docker's own files would be written anew at every start, and cannot be replaced.
    for file in ("/etc/hostname", "/etc/hosts"):
        if subprocess.run(["umount", file], check=False, capture_output=True).returncode == 0:
            Path(file).touch()
    if not Path("/etc/hosts").read_text():
        Path("/etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    if hostname := Path("/etc/hostname").read_text().strip():
        subprocess.run(["hostname", hostname], check=True)
    for folder in ("/run/sshd", "/run/lock", str(units.RUN)):
        Path(folder).mkdir(mode=0o755, parents=True, exist_ok=True)
    # As systemd's 50-default.conf.
    for place in Path("/proc/sys/net/ipv4/conf").glob("*/rp_filter"):
        if place.parent.name != "all":
            place.write_text("2")
    subprocess.run(["ip", "route", "replace", LINK_LOCAL, "dev", "eth0"], check=True)
    devices.main()
    console = Path("/dev/console")
    console.unlink(missing_ok=True)
    console.symlink_to("/proc/1/fd/1")


def spawn(*command: str) -> None:
    """Start a process and do not wait for it."""
    subprocess.Popen(command, stdin=subprocess.DEVNULL)


def received() -> Iterator[int]:
    """The signals that arrive, one after the other."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in WATCHED:
        signal.signal(number, lambda number, frame: None)
    while True:
        yield from reader.recv(64)


def reap() -> list[int]:
    """The process ids of those that have ended."""
    found = []
    with suppress(ChildProcessError):
        while ended := os.waitpid(-1, os.WNOHANG)[0]:
            found.append(ended)
    return found


def was(name: str, ended: int) -> bool:
    """Whether this process was a unit that nobody has stopped."""
    with suppress(OSError, ValueError):
        return int((units.RUN / f"{name}.pid").read_text()) == ended
    return False


def start_again(name: str, before: list[float]) -> None:
    """Start a unit that has ended by itself, unless it has done so too often; `before` is when it did."""
    now = time.monotonic()
    before[:] = [moment for moment in before if now - moment < INTERVAL]
    pause = units.pause(name)
    if pause is None or len(before) >= BURST:
        return
    before.append(now)
    # Whoever stops it meanwhile takes the file away.
    spawn("sh", "-c", f"sleep {pause}; test ! -e {units.RUN}/{name}.pid || exec systemctl start {name}")


def shut_down() -> None:
    """End services in order; what is left ends with this process."""
    print("System is going down.", flush=True)
    for name in units.stopped_at_shutdown():
        units.stop(name)
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
