"""What an engine of the tests that was killed leaves in the machine: containers, mounts, network namespaces and devices.

The next engine would fail: a VXLAN exists once for each number, also when it is in a namespace that nobody uses, and the addresses of a
bridge that has remained lead nowhere. What another engine has is not touched: everything here is found by the folder of the killed
engine, or by the ids of its networks.
"""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.engine.machine import BRIDGE, call, links, mounts
from tests.waiting import until

PREFIX = "tfdeploy-engine-"
"""What the folder of an engine begins with, in the folder for temporary files."""

NOTE = "data-folder"
"""The file in it with the path of its data folder."""

NETWORKS = "network/files/local-kv.db"
"""Below the data folder of an engine: its account of networks, with the names of bridges."""

_NAMESPACE = re.compile(r"\d+-([0-9a-z]{10})")
"""What Docker calls the namespace of an overlay network; the last part is the beginning of the network's id."""

_VXLAN = re.compile(r"vx-[0-9a-f]+-([0-9a-z]{5})")
"""What Docker calls the VXLAN of an overlay network."""


@contextmanager
def noted(home: Path, data: Path) -> Iterator[None]:
    """Write down in the folder of an engine where its data folder is, and hold a lock on that: one that is killed leaves the note."""
    with (home / NOTE).open("w") as note:
        fcntl.flock(note, fcntl.LOCK_EX)
        note.write(str(data))
        note.flush()
        yield


def remove_remains(data: Path) -> None:
    """Remove what killed engines have left: the last one with this data folder, and those of other users' folders."""
    for note in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{NOTE}"):
        with note.open() as held, suppress(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder := held.read():
                _remove(note.parent, Path(folder))
    _forget_networks(data)


def _remove(home: Path, data: Path) -> None:
    _kill(home)
    overlays = _empty_namespaces(home / "run/netns")
    for mount in mounts((home, data)):
        call("umount", "--lazy", mount)
    _remove_devices(_vxlans(overlays))
    _forget_networks(data)
    shutil.rmtree(home, ignore_errors=True)


def _forget_networks(data: Path) -> None:
    networks = data / NETWORKS
    if networks.exists():
        _remove_bridges(set(BRIDGE.findall(networks.read_bytes().decode("ascii", "replace"))))
        # It may make the next engine panic; none of the networks is kept.
        networks.unlink()


def _kill(home: Path) -> None:
    """End the containers: a killed engine leaves them, and each has a shim whose arguments name the engine's folder."""
    processes = {int(path.name): path for path in Path("/proc").iterdir() if path.name.isdigit()}
    killed = {pid for pid, path in processes.items() if f"{home}/run/containerd" in _read(path / "cmdline")}
    parents = {pid: _parent(path) for pid, path in processes.items()}
    while children := {pid for pid, parent in parents.items() if parent in killed} - killed:
        killed |= children
    for pid in killed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(_is_alive(processes[pid]) for pid in killed), "the containers of a killed engine have ended")


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace")
    return ""


def _parent(process: Path) -> int:
    fields = _read(process / "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _is_alive(process: Path) -> bool:
    return _read(process / "stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])


def _empty_namespaces(folder: Path) -> list[str]:
    """Remove the devices in the network namespaces below a folder, and so their other ends; the names of the namespaces."""
    own = Path("/proc/self/ns/net").stat()
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    for path in map(Path, mounts((folder,))):
        # A container with the machine's own network has a file for it here, too.
        if path.exists() and not os.path.samestat(path.stat(), own):
            inside = ("nsenter", f"--net={path}")
            for name in _shown(*inside, "ip", "-o", "link"):
                call(*inside, "ip", "link", "delete", name)
    return names


def _vxlans(namespaces: Iterable[str]) -> set[str]:
    """The VXLANs of these overlay networks that are in the machine's own namespace: an engine creates them there and moves them."""
    ids = {found[1][:5] for name in namespaces if (found := _NAMESPACE.fullmatch(name))}
    return {name for name in links() if (found := _VXLAN.fullmatch(name)) and found[1] in ids}


def _remove_bridges(names: set[str]) -> None:
    """Remove bridges with the devices that are attached to them."""
    for name in names & links():
        _remove_devices([*_shown("ip", "-o", "link", "show", "master", name), name])


def _remove_devices(names: Iterable[str]) -> None:
    for name in names:
        call("ip", "link", "delete", name)


def _shown(*command: str) -> list[str]:
    """The names of the devices that `ip` lists."""
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    return [line.split(": ")[1].partition("@")[0] for line in lines]
