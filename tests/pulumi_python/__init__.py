"""The Python that Pulumi starts in these tests, by `PULUMI_PYTHON_CMD`, and that runs the command: the same at less processor time."""

import os
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

PIP_LIST = ("-m", "pip", "list", "-v", "--format", "json")
"""What Pulumi's language host calls twice for each update."""

_FOLDER = TemporaryDirectory(prefix="tfdeploy-python-")
_servers: "list[subprocess.Popen[bytes]]" = []


def plain_python() -> Path:
    """The Python of these tests, but for `pip list`, whose answer is stored."""
    return _command("plain", sys.executable)


def forked_python(*modules: str, path: str | None = os.environ.get("PYTHONPATH")) -> Path:
    """The same, but programs, dynamic resources and the command run in a fork of `server`, which has imported `modules` too; only where
    their PYTHONPATH is `path`."""
    client, address = Path(__file__).with_name("client.py"), _socket(path, *modules)
    return _command(f"forked-{address.name}", sys.executable, "-IS", str(client), str(address), sys.executable)


def server_time() -> float:
    """Processor seconds of the servers and their children that have ended; they are no processes that this one waits for."""
    return sum(map(_time, _servers)) / os.sysconf("SC_CLK_TCK")


def _time(server: "subprocess.Popen[bytes]") -> int:
    descriptor = os.open(f"/proc/{server.pid}/stat", os.O_RDONLY)  # a test may have replaced `open`
    try:
        return sum(map(int, os.read(descriptor, 4096).rpartition(b")")[2].split()[11:15]))
    finally:
        os.close(descriptor)


@cache
def _command(name: str, *python: str) -> Path:
    listing, command = shlex.quote(str(_listing())), Path(_FOLDER.name, name)
    command.write_text(
        f'#!/bin/sh\n[ "$*" != "{" ".join(PIP_LIST)}" ] || exec cat {listing}\nexec {shlex.join(python)} "$@"\n'
    )
    command.chmod(0o755)
    return command


@cache
def _listing() -> Path:
    Path(_FOLDER.name).chmod(0o755)  # for other users
    listing = Path(_FOLDER.name, "packages.json")
    listing.write_bytes(subprocess.run([sys.executable, *PIP_LIST], capture_output=True, check=True).stdout)
    return listing


@cache
def _socket(path: str | None, *modules: str) -> Path:
    """Start a server, which ends with its standard input."""
    address = Path(_FOLDER.name, str(len(_servers)))
    command = [sys.executable, str(Path(__file__).with_name("server.py")), str(address), *modules]
    variables = {**os.environ, "PYTHONPATH": path} if path is not None else None
    process = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _servers.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return address
