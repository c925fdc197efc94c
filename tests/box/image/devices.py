"""The nodes of the disks that a machine has beside its own: what udev does."""

import json
import os
import stat
from contextlib import suppress
from pathlib import Path

DEVICES = Path("/box/machine/devices.json")
MAJOR = 7


def main() -> None:
    """Make the nodes that are missing, and take away those of disks that are gone."""
    wanted: dict[str, int] = json.loads(DEVICES.read_text())
    for node in Path("/dev").glob("sd[f-p]"):
        if str(node) not in wanted:
            node.unlink()
    for name, minor in wanted.items():
        with suppress(FileExistsError):
            os.mknod(name, stat.S_IFBLK | 0o660, os.makedev(MAJOR, minor))


if __name__ == "__main__":
    main()
