"""The lock of a cluster, which processes are a cluster's, and a supervisord that shuts down."""

import fcntl
import os
import subprocess
import threading
import xmlrpc.client
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer
from typing import IO

import pytest

from tfdeploy.backends.local.paths import Places
from tfdeploy.backends.local.supervisor import MARK, Faults, Supervisor, marked
from tfdeploy.errors import Unreachable


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(str(tmp_path / "clusters" / "cluster"))


def test_a_lock_whose_file_was_deleted_meanwhile_is_taken_again(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process deletes the cluster while this one waits for its lock."""
    real_flock = fcntl.flock
    opened: list[IO[str]] = []

    def flock(lock: IO[str], operation: int) -> None:
        if not opened:
            places.lock.unlink()
        opened.append(lock)
        real_flock(lock, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with Supervisor(places).locked():
        with places.lock.open("w") as other, pytest.raises(BlockingIOError):
            real_flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        places.lock.unlink()


@pytest.mark.parametrize("name", ["cluster", "of\r\nlines"])
def test_a_shell_that_has_the_mark_is_not_the_clusters_but_what_left_its_session_is(tmp_path: Path, name: str) -> None:
    places = Places(str(tmp_path / name))
    env = {**os.environ, MARK: str(places.home)}
    typed = subprocess.Popen(["sleep", "600"], env=env)
    orphan = subprocess.Popen(["sleep", "600"], env=env, start_new_session=True)
    try:
        assert [process.pid for process in marked(places.home)] == [orphan.pid]
    finally:
        for process in (typed, orphan):
            process.kill()
            process.wait()


class _ShutsDown(BaseHTTPRequestHandler):
    """A supervisord that still listens while its programs end."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        fault = xmlrpc.client.Fault(Faults.SHUTDOWN_STATE, "SHUTDOWN_STATE")
        body = xmlrpc.client.dumps(fault, methodresponse=True).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_supervisord_that_shuts_down_does_not_respond_any_more(places: Places) -> None:
    places.home.mkdir(parents=True)
    with UnixStreamServer(str(places.supervisor_socket), _ShutsDown) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        supervisor = Supervisor(places)
        with pytest.raises(Unreachable, match=f"{places.home} is shutting down"):
            supervisor.programs()
        with pytest.raises(Unreachable):
            supervisor.program("controller")
        assert not supervisor.running()
        server.shutdown()
