"""The sizes of the volumes on an engine, as far as the engine computes them in the time that reading the inventory takes anyway.

The engine reads each file's size for that: a second or more where there are millions, and before Docker 23 also the sizes of all images
and containers. So nothing waits for it, in a preview as little as in an update without changes: what is late is not printed.
"""

import threading
from collections.abc import Mapping
from typing import Any

from ....errors import TfdeployError
from ..engine.engine import Engine

_LIMIT_SECONDS = 1.0
"""Then the connection is closed, and the engine stops reading."""


class VolumeSizes:
    """The engine is asked in a thread, from the creation of this object on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sizes: Mapping[str, int] = {}
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def known(self) -> Mapping[str, int]:
        """The size of each volume in bytes by name; empty while it is not known."""
        return self._sizes

    def wait(self) -> None:
        """Wait for the response, or the end of the limit."""
        self._thread.join()

    def _ask(self) -> None:
        try:
            usage = self._engine.disk_usage(_LIMIT_SECONDS)
        except TfdeployError:
            return
        self._sizes = volume_sizes(usage)


def volume_sizes(usage: Mapping[str, Any]) -> dict[str, int]:
    """The sizes in the response to `/system/df`; -1 is the engine's for a volume of another driver than its own. Pure."""
    sizes = {volume["Name"]: (volume.get("UsageData") or {}).get("Size", -1) for volume in usage.get("Volumes") or []}
    return {name: size for name, size in sizes.items() if size >= 0}
