"""Stands in for shutdown, poweroff, halt and reboot: now, in some minutes, or not after all."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.box.image.signals import POWER_OFF, REBOOT
from tests.box.image.units import RUN

PENDING = RUN / "shutdown.pid"
SCHEDULED = Path("/run/systemd/shutdown/scheduled")
OPTIONS = {"-h", "-P", "-H", "-r", "-c", "--no-wall", "-f"}


def main(name: str, arguments: list[str]) -> int:
    """Do it; the exit code is shutdown's."""
    if os.geteuid() != 0:
        return _refuse("Interactive authentication required.")
    options = {argument for argument in arguments if argument.startswith("-")}
    times = [argument for argument in arguments if argument not in options]
    if unknown := options - OPTIONS:
        return _refuse(f"{name}: unrecognized option '{min(unknown)}'")
    if name != "shutdown":
        times = ["now"]
    cancel()
    if "-c" in options:
        return 0
    when = times[0] if times else "+1"
    minutes = "0" if when == "now" else when.removeprefix("+")
    if not minutes.isdecimal():
        return _refuse(f"Failed to parse time specification: {when}")
    order = REBOOT if name == "reboot" or "-r" in options else POWER_OFF
    if minutes == "0":
        os.kill(1, order)
    else:
        schedule(int(minutes), order)
    return 0


def schedule(minutes: int, order: int) -> None:
    """Shut down later; a process waits for it."""
    at = time.time() + 60 * minutes
    command = ["sh", "-c", f"sleep {60 * minutes}; exec kill -{order} 1"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    PENDING.write_text(str(process.pid))
    SCHEDULED.parent.mkdir(parents=True, exist_ok=True)
    SCHEDULED.write_text(f"USEC={at * 1e6:.0f}\nMODE={'reboot' if order == REBOOT else 'poweroff'}\n")
    date = time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
    print(f"Shutdown scheduled for {date}, use 'shutdown -c' to cancel.", file=sys.stderr)


def cancel() -> None:
    """Forget a shutdown that has been scheduled."""
    with suppress(OSError, ValueError):
        os.killpg(int(PENDING.read_text()), signal.SIGTERM)
    PENDING.unlink(missing_ok=True)
    SCHEDULED.unlink(missing_ok=True)


def _refuse(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
