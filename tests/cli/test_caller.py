"""`tfdeploy run --on docker` by a user who is not root: the tasks run as that user."""

import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_run import Shell
from tests.users import as_user, own

UID, GID = 41234, 45678
WRITES = """\
import os, pathlib, sys
home = pathlib.Path(os.environ["HOME"], "settings")
home.write_text("mine")
pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], "checkpoint").write_text("saved")
pathlib.Path(sys.argv[1], "result").write_text("written")
print(os.getuid(), os.getgid(), open("beside").read())
"""


class Engine(socketserver.BaseRequestHandler):
    """One connection to the engine, whose own socket is root's."""

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as far:
            far.connect(self.server.engine)  # type: ignore[attr-defined]
            back = threading.Thread(target=copy, args=(far, self.request))
            back.start()
            copy(self.request, far)
            back.join()


def copy(source: socket.socket, target: socket.socket) -> None:
    """All that comes, and its end."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class Server(socketserver.ThreadingUnixStreamServer):
    """Passes connections on to the engine."""

    daemon_threads = True
    engine = ""


@pytest.fixture
def folder(engine: str) -> Iterator[Path]:
    """A folder of the user's, with a socket that leads to the engine."""
    with tempfile.TemporaryDirectory(prefix="tfdeploy-user-") as name, Server(f"{name}/engine.sock", Engine) as server:
        assert engine.startswith("unix://"), engine
        server.engine = engine.removeprefix("unix://")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Path(name)
        server.shutdown()


class OfUser(Shell):
    """The shell of a user who is not root."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        # What root has installed, root alone may run.
        plugins = Path(self.env["PULUMI_HOME"], "plugins")
        installed = plugins.resolve()
        plugins.unlink()
        shutil.copytree(installed, plugins)
        self.env.update(HOME=str(folder), USER="ada", LOGNAME="ada", DOCKER_HOST=f"unix://{folder}/engine.sock")

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start `tfdeploy run` as the user."""
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = as_user(UID, GID, "tfdeploy", "run", *arguments)
        return subprocess.Popen(command, cwd=self.folder, env=self.env, **pipes)


def test_in_containers_tasks_run_as_the_caller(folder: Path, python_image: str) -> None:
    shell = OfUser(folder)
    shell.write(WRITES)
    (shell.folder / "beside").write_text("the caller's file")
    results = folder / "results"
    results.mkdir(mode=0o700)
    own(folder, UID, GID)
    kept = ["--set", "container.retain_volumes=false"]
    given = ["--on", "docker", "--image", python_image, *kept, "--volume", f"{results}:{results}"]
    code, out, err = shell.run(*given, "--", "python", "train.py", str(results), "{task_index}")
    assert (code, out) == (0, f"worker-0 | {UID} {GID} the caller's file\n"), err
    written = (results / "result").stat()
    assert (written.st_uid, written.st_gid) == (UID, GID)
    shell.assert_nothing_left()
