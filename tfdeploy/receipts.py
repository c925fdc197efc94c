"""What records do not have of a run: its arguments, versions, machines and code, as they were when it was submitted.

They are in the user's state folder on the computer that submitted the run, for `tfdeploy runs` and `tfdeploy diff`. Nothing else
needs them: a file that is missing or damaged leaves a part of their output out.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .agent.files import write_whole
from .errors import BackendError
from .paths import cluster_folder, make_private, state_folder

_MAX_RECEIPTS = 200
"""How many receipts of one cluster are stored; the oldest are deleted first."""

_MAX_ARCHIVES, _MAX_BYTES = 200, 200 * 1024 * 1024
"""How many code archives are stored, and how many bytes of them; the oldest are deleted first. A larger one is not stored."""


@dataclass(frozen=True)
class Receipt:
    """What was submitted."""

    options: Mapping[str, str] = field(default_factory=dict)
    """The arguments as the user wrote them, without secrets."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Python and packages on the computer of the user."""
    machines: Mapping[str, int] = field(default_factory=dict)
    """The size of machines, such as `g6.xlarge`, to how many there were."""


def write(cluster: Mapping[str, object], run: str, receipt: Receipt) -> None:
    """Store the receipt of a run. A disk that is full or cannot be written is ignored."""
    path = _path(cluster, run)
    with suppress(OSError, BackendError):
        make_private(path.parent)
        write_whole(path, json.dumps(asdict(receipt), indent=1), mode=0o600)
        _remove_oldest(path.parent, "*.json", _MAX_RECEIPTS)


def read(cluster: Mapping[str, object], run: str) -> Receipt | None:
    """The receipt of a run; None if this computer has none that can be read."""
    try:
        data: Any = json.loads(_path(cluster, run).read_bytes())
        return Receipt(dict(data["options"]), dict(data["versions"]), dict(data["machines"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def machine_counts(sizes: Iterable[str]) -> dict[str, int]:
    """`Receipt.machines`, from the size of each machine."""
    return dict(sorted(Counter(sizes).items()))


def store_code(name: str, archive: bytes) -> None:
    """Store a code archive under its content hash. A disk that is full or cannot be written is ignored."""
    folder = _code_folder()
    path = folder / f"{name}.zip"
    with suppress(OSError, BackendError):
        if len(archive) <= _MAX_BYTES:
            make_private(folder)
            write_whole(path, archive, mode=0o600)
            _remove_oldest(folder, "*.zip", _MAX_ARCHIVES, _MAX_BYTES)


def code_path(name: str) -> Path | None:
    """The stored archive of this name; None if there is none."""
    path = _code_folder() / f"{name}.zip"
    return path if path.exists() else None


def _code_folder() -> Path:
    return state_folder() / "code"


def _path(cluster: Mapping[str, object], run: str) -> Path:
    return state_folder() / "receipts" / cluster_folder(cluster) / f"{run}.json"


def _remove_oldest(folder: Path, pattern: str, count: int, size: float = float("inf")) -> None:
    """Delete the oldest files beyond so many, and beyond so many bytes."""
    files = sorted(((path.stat(), path) for path in folder.glob(pattern)), key=lambda item: -item[0].st_mtime_ns)
    total = 0
    for place, (status, path) in enumerate(files):
        total += status.st_size
        if place >= count or total > size:
            path.unlink(missing_ok=True)
