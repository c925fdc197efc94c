"""Unit files of systemd, as far as the box carries them out; what it does not know is refused, never overlooked."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path("/etc/systemd/system")
WANTED = FOLDER / "multi-user.target.wants"

_CARRIED_OUT = {
    "Unit": {"Before"},
    "Service": {"Type", "ExecStartPre", "ExecStart", "Restart", "RestartSec", "Environment", "StandardOutput"},
    "Install": {"WantedBy"},
}
_WITHOUT_EFFECT = {
    "Unit": {"Description", "Documentation", "After", "Wants", "StartLimitIntervalSec"},
    "Service": {"StandardError", "OOMScoreAdjust", "KillMode", "TimeoutStartSec", "TimeoutStopSec"},
    "Install": set[str](),
}
_CONSOLES = {"journal+console", "tty", "kmsg+console"}


class BadUnit(Exception):
    """A unit file that systemd, or the box, does not take; the message says why."""


@dataclass(frozen=True)
class UnitFile:
    """A service of a unit file."""

    command: list[str]
    before_all: list[tuple[bool, list[str]]] = field(default_factory=list)
    """Commands that run first, and whether one may fail."""
    before: frozenset[str] = frozenset()
    """The units that start later than this one."""
    oneshot: bool = False
    restarts: bool = False
    pause: float = 0.1
    """Seconds before it starts again."""
    environment: dict[str, str] = field(default_factory=dict)
    console: bool = False
    """Whether its output goes to the console."""


def names() -> list[str]:
    """The services that have a unit file."""
    return sorted(path.stem for path in FOLDER.glob("*.service"))


def read(name: str) -> UnitFile:
    """The unit file of a service."""
    return parsed((FOLDER / f"{name}.service").read_text())


def parsed(text: str) -> UnitFile:
    """What a unit file says."""
    found = _settings(text)
    command = found.get("ExecStart", [])
    if len(command) != 1:
        raise BadUnit("the box takes exactly one ExecStart=")
    kind, restart = _last(found, "Type", "simple"), _last(found, "Restart", "no")
    if kind not in ("simple", "exec", "oneshot") or restart not in ("no", "always"):
        raise BadUnit(f"the box knows no Type={kind} with Restart={restart}")
    return UnitFile(
        command=shlex.split(command[0]),
        before_all=[_may_fail(line) for line in found.get("ExecStartPre", [])],
        before=frozenset(name.removesuffix(".service") for line in found.get("Before", []) for name in line.split()),
        oneshot=kind == "oneshot",
        restarts=restart == "always",
        pause=float(_last(found, "RestartSec", "0.1").removesuffix("s")),
        environment=dict(word.split("=", 1) for line in found.get("Environment", []) for word in shlex.split(line)),
        console=_last(found, "StandardOutput", "journal") in _CONSOLES,
    )


def _settings(text: str) -> dict[str, list[str]]:
    """All values of each key; an empty one takes those before it away, as in systemd."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        words = line.strip()
        if not words or words[0] in "#;":
            continue
        if words.startswith("["):
            section = words.strip("[]")
            continue
        key, equals, value = (part.strip() for part in words.partition("="))
        if not equals or key not in _CARRIED_OUT.get(section, set()) | _WITHOUT_EFFECT.get(section, set()):
            raise BadUnit(f"the box does not know {key}= in [{section}]")
        found[key] = [*found.get(key, []), value] if value else []
    return found


def _last(found: dict[str, list[str]], key: str, default: str) -> str:
    return found[key][-1] if found.get(key) else default


def _may_fail(line: str) -> tuple[bool, list[str]]:
    return line.startswith("-"), shlex.split(line.removeprefix("-"))
