"""Copies Python, and the few programs that tasks of the tests call, out of a Debian into a folder: run in Debian's image.

Each machine of a Swarm gets an image of its own, so its size is paid many times. Standard library only.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

PYTHON = Path("/usr/lib/python3.11")
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
FOLDERS = (str(PYTHON), "/usr/lib/python3", "/usr/local/lib/python3.11", "/usr/lib/locale/C.utf8", "/usr/lib/ssl")
NOT_NEEDED = (
    *("config-*", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtledemo", "turtle.py"),
    "__pycache__/turtle.*",
)
FILES = (
    *("/etc/group", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/passwd", "/etc/os-release", "/etc/debian_version"),
    *("/etc/ssl/openssl.cnf", "/etc/ssl/certs/ca-certificates.crt", "/lib64/ld-linux-x86-64.so.2", "/sbin/ldconfig"),
)
PROGRAMS = """
cat chmod chown cp cut date dirname echo env false find grep head hostname id kill ln ls mkdir mv printenv pwd python
python3 rm sed sh sleep sort stty tail test timeout touch tr true uname wc
"""
LOADED = """
libgcc_s.so.1 libstdc++.so.6 libdl.so.2 libm.so.6 libpthread.so.0 libresolv.so.2 librt.so.1 libutil.so.1
libnss_dns.so.2 libnss_files.so.2
"""
"""Libraries that are opened by name, and those of packages that tasks bring: TensorFlow's are C++."""

LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
EMPTY = {"tmp": 0o1777, "var/tmp": 0o1777, "root": 0o700, "home": 0o755, "run": 0o755, "usr/sbin": 0o755}


def copy(path: Path, target: Path) -> None:
    """Copy a file to the same place below `target`, and what it leads to when it is a link."""
    real = path.parent.resolve() / path.name  # /bin is a link to /usr/bin
    there = target / real.relative_to("/")
    if there.exists() or there.is_symlink():
        return
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(real, there, follow_symlinks=False)
    if real.is_symlink():
        copy(real.parent / real.readlink(), target)


def needed(program: Path) -> list[Path]:
    """The libraries that a program or a library is linked with."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    return [Path(found) for found in re.findall(r"=> (/\S+)", done.stdout)]


def main(target: Path) -> None:
    """Fill the folder."""
    for name, place in LINKS.items():
        (target / place).mkdir(parents=True, exist_ok=True)
        (target / name).symlink_to(place)
    for name, mode in EMPTY.items():
        (target / name).mkdir(parents=True, exist_ok=True)
        (target / name).chmod(mode)
    for folder in FOLDERS:
        shutil.copytree(
            folder,
            target / folder.lstrip("/"),
            symlinks=True,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(*NOT_NEEDED),
        )
    programs = [Path(found) for found in map(shutil.which, PROGRAMS.split()) if found]
    libraries = [LIBRARIES / name for name in LOADED.split()]
    for path in [*programs, *libraries, *map(Path, FILES)]:
        copy(path, target)
    for path in [*programs, *libraries, *(PYTHON / "lib-dynload").glob("*.so")]:
        for library in needed(path):
            copy(library, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
