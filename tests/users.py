"""Commands as a user who is not root, whatever folders of the machine only root can enter."""

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import ROOT

AS_USER = """\
import os, subprocess, sys, tempfile
from pathlib import Path

uid, gid, closed, needed, *command = sys.argv[1:]
staged = Path(tempfile.mkdtemp())
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(staged)], check=True)
places = [Path(place) for place in needed.split(":")]
for number, place in enumerate(places):
    (staged / str(number)).mkdir()
    subprocess.run(["mount", "--rbind", str(place), str(staged / str(number))], check=True)
for folder in filter(None, closed.split(":")):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder], check=True)
for number, place in enumerate(places):
    if not place.exists():
        place.mkdir(parents=True)
        subprocess.run(["mount", "--rbind", str(staged / str(number)), str(place)], check=True)
subprocess.run(["umount", "--lazy", str(staged)], check=True)
staged.rmdir()
os.setgroups([])
os.setresgid(int(gid), int(gid), int(gid))
os.setresuid(int(uid), int(uid), int(uid))
os.execvp(command[0], command)
"""
"""In a mount namespace of its own: a folder that only root can enter is replaced by one that has what is needed, and nothing else."""


def as_user(uid: int, gid: int, *command: str) -> list[str]:
    """The command as this user, with the checkout, its virtual environment, Python and Pulumi where they are.

    The user has no other groups and no capability. The tests need to be root for this.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can run a command as another user")
    needed = [place for place in _needed() if place.is_dir()]
    closed = sorted({folder for place in needed for folder in _closed(place)})
    outermost = [folder for folder in closed if not any(other in folder.parents for other in closed)]
    texts = (":".join(map(str, outermost)), ":".join(map(str, needed)))
    unshare = ["unshare", "--mount", "--propagation", "private", "--"]
    return [*unshare, sys.executable, "-c", AS_USER, str(uid), str(gid), *texts, *command]


def own(folder: Path, uid: int, gid: int) -> None:
    """Give a folder, and all that is in it, to a user."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, gid, follow_symlinks=False)


def _needed() -> list[Path]:
    """The folders without which nothing of ours runs; the outer ones first."""
    pulumi = Path(shutil.which("pulumi") or "/").resolve().parent
    plugins = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"
    return sorted(
        {ROOT, Path(sys.prefix), Path(sys.base_prefix).resolve(), pulumi, plugins}, key=lambda path: len(path.parts)
    )


def _closed(place: Path) -> list[Path]:
    """The folders on the way to a place that not everybody can enter."""
    return [folder for folder in (place, *place.parents) if not folder.stat().st_mode & stat.S_IXOTH]
