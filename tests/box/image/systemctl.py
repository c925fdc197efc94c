"""Stands in for systemctl: does what it is told for the units of the box, and refuses all others as systemd would."""

import os
import sys
from collections.abc import Callable

from tests.box.image import units

CHANGES: dict[str, Callable[[str], None]] = {
    "start": units.start,
    "stop": units.stop,
    "restart": units.restart,
    "reload": units.reload,
    "enable": units.enable,
    "disable": units.disable,
}
NOW = {"enable": units.start, "disable": units.stop}
FLAGS = {"--now", "--no-block", "--quiet", "-q"}


def main(arguments: list[str]) -> int:
    """Do it; the exit code is systemctl's."""
    flags = {argument for argument in arguments if argument.startswith("-")}
    verb, *names = [argument for argument in arguments if argument not in flags] or ["list-units"]
    if unknown := flags - FLAGS:
        return _say(f"systemctl: unrecognized option '{min(unknown)}'", 1)
    if verb == "daemon-reload":
        return 0
    if verb in ("is-active", "is-enabled"):
        return max(_ask(verb, units.named(name), bool(flags & {"--quiet", "-q"})) for name in names)
    if verb not in CHANGES:
        return _say(f"Unknown command verb '{verb}'.", 1)
    return max(_change(verb, units.named(name), flags) for name in names)


def _ask(verb: str, name: str, quiet: bool) -> int:
    known = name in units.known()
    if verb == "is-active":
        yes, words = known and bool(units.pid(name)), ("active", "inactive")
    else:
        yes, words = known and units.enabled(name), ("enabled", "disabled")
    if not quiet:
        print(words[0] if yes else words[1])
    return 0 if yes else 3 if verb == "is-active" else 1


def _change(verb: str, name: str, flags: set[str]) -> int:
    if name not in units.known():
        if verb in NOW:
            return _say(f"Failed to {verb} unit: Unit file {name}.service does not exist.", 1)
        return _say(f"Failed to {verb} {name}.service: Unit {name}.service not found.", 5)
    if os.geteuid() != 0:
        return _say(f"Failed to {verb} {name}.service: Interactive authentication required.", 1)
    if verb == "reload" and not units.pid(name):
        return _say(f"{name}.service is not active, cannot reload.", 1)
    if "--no-block" in flags and os.fork():
        return 0
    try:
        CHANGES[verb](name)
        if verb in NOW and "--now" in flags:
            NOW[verb](name)
    except units.StartFailed as reason:
        words = "failed because the control process exited with error code"
        return _say(f"Job for {name}.service {words} ({reason}).", 1)
    return 0


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
