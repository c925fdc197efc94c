"""The settings of the watchdog. What cannot be read never keeps a machine from ending."""

import json
from pathlib import Path
from typing import Any, Callable, Dict

from .policy import Limits

SETTINGS = Path("/etc/tfdeploy/watchdog.json")
"""The present settings; `pulumi up` replaces the file (`backends.ec2.swarm`)."""

CREATED_WITH = Path("/usr/local/lib/tfdeploy/settings.json")
"""The settings that the machine was created with."""

DEFAULTS: Dict[str, Any] = {
    "lifetime": 72 * 3600.0,
    "idle": 900.0,
    "boot": 1800.0,
    "spot": False,
    "region": "",
    "bucket": "",
    "folder": "",
    "endpoint": "",
    "ssm": False,
}
"""Where no file can be read. The limits are the arguments' own defaults."""


def read_settings(log: Callable[[str], None]) -> Dict[str, Any]:
    """The present settings; else those that the machine was created with; else the defaults."""
    return _read(SETTINGS, log) or _read(CREATED_WITH, log) or DEFAULTS


def _read(path: Path, log: Callable[[str], None]) -> Dict[str, Any]:
    """The settings in a file; empty where it cannot be read."""
    try:
        settings = {**DEFAULTS, **json.loads(path.read_text())}
        Limits.from_settings(settings)
    except (OSError, ValueError, TypeError) as error:
        log(f"{path} cannot be read: {error!r}")
        return {}
    return settings
