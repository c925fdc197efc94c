"""Stands in for mount.efs of amazon-efs-utils: a folder that all machines of the box share is mounted instead."""

import re
import subprocess
import sys
from pathlib import Path

SHARED = Path("/box/efs")
SPEC = re.compile(r"(fs-[0-9a-f]+)(?:\.efs\.[a-z0-9-]+\.amazonaws\.com)?(?::(/.*)?)?")
FAILED_MOUNT = 32


def main(arguments: list[str]) -> int:
    """Mount; the exit code is that of mount.efs."""
    paths, options = _parse(arguments)
    if len(paths) != 2 or not (found := SPEC.fullmatch(paths[0])):
        return _fail(f"Invalid file system name: {' '.join(paths)}", 1)
    name, path = found.groups()
    if "accesspoint" in options:
        return _fail("the box knows no access points", 1)
    if not (SHARED / name).is_dir():
        return _fail(
            f'Failed to resolve "{name}.efs.us-west-2.amazonaws.com" - check that your file system ID is correct, '
            "and ensure that the VPC has an EFS mount target for this file system ID.",
            1,
        )
    source = SHARED / name / (path or "/").lstrip("/")
    if not source.is_dir():
        return _fail(f"mount.nfs4: mounting {path} failed, reason given by server: No such file or directory", 32)
    if not Path(paths[1]).is_dir():
        return _fail(f"mount.nfs4: mount point {paths[1]} does not exist", FAILED_MOUNT)
    if subprocess.run(["mountpoint", "--quiet", paths[1]], check=False).returncode == 0:
        return _fail(f"{paths[1]} is already mounted, please run 'umount' command to unmount it", 0)
    mode = "ro" if "ro" in options else "rw"
    return subprocess.run(["mount", "--bind", "-o", mode, source, paths[1]], check=False).returncode


def _parse(arguments: list[str]) -> tuple[list[str], set[str]]:
    """What to mount where, and the names of the options."""
    paths: list[str] = []
    options: set[str] = set()
    rest = iter(arguments)
    for argument in rest:
        if argument == "-o":
            options |= {option.partition("=")[0] for option in next(rest, "").split(",")}
        elif not argument.startswith("-"):
            paths.append(argument)
    return paths, options


def _fail(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
