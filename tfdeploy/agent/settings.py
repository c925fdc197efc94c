"""A launcher's settings: `task.json` of the local backend, or JSON on the command line of a container. Pure."""

import re
from dataclasses import dataclass
from typing import Any, Dict, Optional

SECRET_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
"""A secret with such a name is also an environment variable."""


@dataclass(frozen=True)
class TaskSettings:
    """The settings of one launcher."""

    hostname: str
    job: str
    index: int
    controller: str
    """The controller's address."""
    token: str
    """The file with the task's token."""
    folder: str
    """The launcher's folder."""
    secrets: str
    """The folder with the secrets."""
    host: str = ""
    """The host name or IP address by which other tasks reach this one; empty: the launcher determines it."""
    port: int = 0
    """The port that the user has chosen; 0 for any."""
    memory: int = 0
    """The limit in bytes; 0 for none."""
    gpus: Optional[str] = None
    """`CUDA_VISIBLE_DEVICES`; None leaves it as it is."""
    machine: str = ""
    container: str = ""
    lease: float = 0.0
    """The launcher stops its program when it has not reached its controller for so many seconds; 0: never."""

    def to_dict(self) -> Dict[str, Any]:
        """As JSON."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "TaskSettings":
        """From JSON. Entries of a newer version are ignored: a running launcher reads its settings again."""
        return cls(**{name: value for name, value in data.items() if name in cls.__dataclass_fields__})
