"""EBS volumes as loop devices: a file for each, which outlives the machines that it is attached to."""

import re
import subprocess
import threading
from pathlib import Path

from tests.waiting import until

MAJOR = 7
"""The kernel's number of loop devices."""
DATA = re.compile(r"/dev/sd[f-p]")
"""What volumes are called that no machine boots from."""

_LOCK = threading.Lock()


class Disks:
    """The volumes of a box that machines have, or had."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loops: dict[str, str] = {}
        self._attached: dict[str, dict[str, str]] = {}

    def attach(self, instance_id: str, device: str, volume_id: str, gib: int) -> None:
        """Have a volume be a device of an instance; its file is made when it is first attached."""
        file = self.file(volume_id)
        until(lambda: not self._loop(file), f"the last machine of {volume_id} has let it go")
        with _LOCK:
            if not file.exists():
                file.touch(mode=0o600)
                with file.open("r+b") as opened:
                    opened.truncate(gib << 30)
            self._loops[volume_id] = _losetup("--find", "--show", str(file))
            self._attached.setdefault(instance_id, {})[device] = volume_id

    def file(self, volume_id: str) -> Path:
        """What lies under a volume; one that is there before the volume is first attached is taken as it is."""
        self._folder.mkdir(exist_ok=True)
        return self._folder / volume_id

    def of(self, instance_id: str) -> dict[str, int]:
        """Device to the minor number of the loop device that it is."""
        found = self._attached.get(instance_id, {})
        return {device: int(self._loops[name].removeprefix("/dev/loop")) for device, name in found.items()}

    def detach(self, instance_id: str, device: str) -> None:
        """Take a volume off; the kernel lets go of it when nothing has it mounted any more."""
        volume_id = self._attached.get(instance_id, {}).pop(device, "")
        if volume_id:
            _losetup("--detach", self._loops.pop(volume_id))

    def delete(self, volume_id: str) -> None:
        """The volume is gone, with what is on it."""
        (self._folder / volume_id).unlink(missing_ok=True)

    def remove(self) -> None:
        """Take all of them off."""
        for instance_id, devices in self._attached.items():
            for device in list(devices):
                self.detach(instance_id, device)

    def left(self) -> str:
        """The files that are there, and the loop devices that are of this box, by lines."""
        files = [path.name for path in self._folder.glob("*")]
        return "\n".join([*files, *(loop for loop in self._listed(str(self._folder)))])

    def _loop(self, file: Path) -> list[str]:
        return self._listed(str(file))

    def _listed(self, beginning: str) -> list[str]:
        """The loop devices whose files' names begin so."""
        if not self._folder.exists():
            return []
        lines = _losetup("--list", "--noheadings", "--output", "NAME,BACK-FILE").splitlines()
        pairs = [line.split(maxsplit=1) for line in lines]
        return [pair[0] for pair in pairs if len(pair) > 1 and pair[1].startswith(beginning)]


def _losetup(*arguments: str) -> str:
    return subprocess.run(["losetup", *arguments], check=True, capture_output=True, text=True).stdout.strip()
