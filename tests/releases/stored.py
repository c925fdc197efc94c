"""The file `VERSION/BACKEND.json`: a cluster that has finished two runs, as that version stored it.

| key | what it has |
|---|---|
| `program` | the files of the user's Pulumi program |
| `stack` | what `pulumi stack export --show-secrets` printed |
| `state` | the files of the user's state folder for tfdeploy: registry, receipts, code, records |

Text that differs from one computer to another is a placeholder. Secrets are zeros, and the archive of the agent is left out.
`python -m tests.releases.make BACKEND` writes the file of the present version; the files of released versions never change.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PLACE, OWNER, MACHINE, MACHINE_ID = "@FOLDER@", "@OWNER@", "@MACHINE@", "@MACHINE-ID@"
"""The folder of the project, who created the cluster, this machine, and its id."""

RUNTIME, BIN, ENGINE = "@RUNTIME@", "@BIN@", "@ENGINE@"
"""Where the sockets of a local cluster are, and the programs of Python's environment; the address of a Docker engine, or of the
API server of Kubernetes."""

IS_SECRET = "4dabf18193072939515e22adb298388d"
"""Pulumi's mark of a secret value."""

BINARY = "base64:"
"""What the text of a file begins with that is not UTF-8."""


@dataclass(frozen=True)
class StoredRelease:
    """A cluster of one backend, as one version stored it."""

    version: str
    backend: str
    data: Mapping[str, Any]

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The resources in the state of its stack."""
        resources: list[dict[str, Any]] = self.data["stack"]["deployment"]["resources"]
        return resources

    def texts(self, pattern: str) -> dict[str, str]:
        """The path and the text of each file of the state folder that matches."""
        return {path: text for path, text in self.data["state"].items() if Path(path).match(pattern)}

    def restored(self, values: Mapping[str, str]) -> "StoredRelease":
        """The same on another computer: placeholder to what is written instead."""
        return StoredRelease(self.version, self.backend, replaced(self.data, values))

    def write_program(self, folder: Path) -> None:
        """Write the user's program."""
        _write(folder, self.data["program"])

    def write_state(self, folder: Path) -> None:
        """Write the state folder, which only the user can read."""
        _write(folder, self.data["state"])
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)


def releases(*backends: str) -> list[StoredRelease]:
    """What is stored of these backends, of all versions."""
    paths = [path for path in sorted(FOLDER.glob("*/*.json")) if path.stem in backends]
    return [StoredRelease(path.parent.name, path.stem, json.loads(path.read_text())) for path in paths]


def read_files(folder: Path, is_stored: Callable[[str], bool]) -> dict[str, str]:
    """The path and the content of each file of a folder that is stored."""
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: _text(path.read_bytes()) for name, path in paths.items() if is_stored(name)}


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return BINARY + base64.b64encode(content).decode()


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        is_binary = text.startswith(BINARY)
        path.write_bytes(base64.b64decode(text.removeprefix(BINARY)) if is_binary else text.encode())


def replaced(value: Any, values: Mapping[str, str]) -> Any:
    """JSON in which each of these texts is replaced, the longest first."""

    def replace(text: str) -> str:
        for name in sorted(values, key=len, reverse=True):
            text = text.replace(name, values[name])
        return text

    return mapped(value, replace)


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """JSON in which each text is changed, also the names of members."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): mapped(item, change) for key, item in value.items()}
    return [mapped(item, change) for item in value] if isinstance(value, list) else value
