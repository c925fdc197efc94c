"""A launcher's settings: `task.json` of the local backend, or JSON on the command line of a container. Pure."""

import re
from dataclasses import dataclass
from typing import Optional

from .json_data import JsonData, SparseJsonData

SECRET_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
"""A secret with such a name is also an environment variable."""


@dataclass(frozen=True)
class Limits(SparseJsonData):
    """What one task may use, from the plan to its launcher; 0 for no limit. The arguments of a job have the same names."""

    memory: int = 0
    """Bytes."""
    cpus: float = 0.0
    gpus: int = 0
    nice: int = 0


@dataclass(frozen=True)
class TaskSettings(JsonData):
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
    limits: Limits = Limits()
    gpus: Optional[str] = None
    """`CUDA_VISIBLE_DEVICES`; None leaves it as it is."""
    machine: str = ""
    container: str = ""
    environments: str = ""
    """The folder with what the programs of each run inherit, in a file of JSON that is named like the run; empty: the launcher's own
    environment."""
