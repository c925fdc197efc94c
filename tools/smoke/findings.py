"""What the smoke test reports of AWS: where it differs from the box, and nothing that identifies an account or a computer. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

IN_BOX = {
    "system": "Debian GNU/Linux 12 (bookworm)",
    "docker": "20.10.24+dfsg1",
    "cgroup": "1",
    "systemd": "absent",
    "nfs": "",
}
"""What the machines of the box report (`MACHINE_FACTS`)."""

MACHINE_FACTS = {
    "system": '. /etc/os-release; echo "$PRETTY_NAME"',
    "kernel": "uname -r",
    "docker": "docker version --format '{{.Server.Version}}'",
    "cgroup": "docker info --format '{{.CgroupVersion}}'",
    "systemd": "systemctl is-system-running 2>/dev/null || echo absent",
    "boot": "cloud-init status 2>/dev/null || echo absent",
    "nfs": "findmnt --noheadings --output FSTYPE --types nfs4 || true",
    "disks": "lsblk --nodeps --noheadings --output NAME,SIZE | tr -s '\\n ' ', '",
    "clock": "systemd-analyze 2>/dev/null | head -n 1 || echo absent",
}
"""Name of a fact to the command that root runs on a machine to find it out."""

_REDACTIONS = (
    (re.compile(r"\b(?:AKIA|ASIA|AIDA|AROA|AGPA|ANPA)[A-Z0-9]{12,}\b"), "<key>"),
    (re.compile(r"ssh-(?:ed25519|rsa) [A-Za-z0-9+/=]+"), "<ssh key>"),
    (re.compile(r"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", re.DOTALL), "<private key>"),
    (re.compile(r"(?<![\w.-])\d{12}(?![\w.])|(?<=[-:/])\d{12}(?=[-:/])"), "<account>"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?:/\d{1,2})?"), "<address>"),
    (re.compile(r"\bip-\d{1,3}(?:-\d{1,3}){3}\b|\bec2-\d{1,3}(?:-\d{1,3}){3}\b"), "<host>"),
    (re.compile(r"\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b"), "<address>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "<mail>"),
)

_CONNECTED = re.compile(r"^\s*(\S+): (connected after .+)$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command that was run."""

    command: str
    seconds: float
    exit_code: int
    output: str = ""


def redacted(text: str, words: Sequence[str] = ()) -> str:
    """The text without account ids, keys, addresses and e-mail addresses, and without these words."""
    for word in sorted(filter(None, words), key=len, reverse=True):
        text = text.replace(word, "<redacted>")
    for pattern, replacement in _REDACTIONS:
        text = pattern.sub(replacement, text)
    return text


def connection_times(output: str) -> list[str]:
    """How long each machine took until it joined the Swarm, from what `pulumi up` printed."""
    return [f"{machine}: {text}" for machine, text in _CONNECTED.findall(output)]


def differing_facts(machine: str, facts: Mapping[str, str]) -> list[str]:
    """What a machine reports, with what those of the box do."""
    return [
        f"{machine}: {name}: {value or 'nothing'}" + (f" (box: {IN_BOX[name]})" if name in IN_BOX else "")
        for name, value in facts.items()
        if value != IN_BOX.get(name)
    ]


def differing_properties(resources: Sequence[Mapping[str, Any]], facts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Where what the provider returned differs from the inputs, and from the table of the box's provider (facts.toml)."""
    lines: list[str] = []
    for resource in resources:
        table = facts.get(resource["type"], {})
        inputs, outputs = resource.get("inputs", {}), resource.get("outputs", {})
        name = f"{resource['type'].rpartition(':')[2]} {resource['urn'].rpartition('::')[2]}"
        for path, words in table.items():
            wanted, value = _value(inputs, path), _value(outputs, path)
            problem = _problem(words, wanted, value) if path != "source" else ""
            if problem:
                lines.append(f"{name}: {path}: {problem}")
    return lines


def _problem(words: str, wanted: Any, value: Any) -> str:
    """How a returned value differs from the one that was given, or from the table's default; empty where it does not."""
    if _is_secret(wanted) or _is_secret(value):
        return ""
    if wanted is not None:
        if isinstance(wanted, Mapping) and isinstance(value, Mapping):
            value = {key: value.get(key) for key in wanted}
        return "" if _plain(wanted) == _plain(value) else f"given {_shown(wanted)}, returned {_shown(value)}"
    _, has_default, default = words.partition("= ")
    if has_default:
        return "" if _plain(value) == default else f"default {default} in the table, returned {_shown(value)}"
    return ""


def _value(properties: Any, path: str) -> Any:
    for part in path.split("."):
        properties = properties.get(part) if isinstance(properties, Mapping) else None
    return properties


def _is_secret(value: Any) -> bool:
    return isinstance(value, Mapping) and "4dabf18193072939515e22adb298388d" in value


def _plain(value: Any) -> Any:
    """A value as it is compared: the engine has numbers with a fraction, and the provider does not store an empty text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item not in (None, "")}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value or ""


def _shown(value: Any) -> str:
    text = str(value)
    return "nothing" if value in (None, "") else text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


_LONGEST_VALUE = 80


def document(sections: Mapping[str, Sequence[str]], words: Sequence[str] = ()) -> str:
    """The file that is sent back."""
    parts = [
        f"## {title}\n" + "".join(f"{line}\n" for line in lines or ["(nothing)"]) for title, lines in sections.items()
    ]
    return redacted("\n".join(parts), words)
