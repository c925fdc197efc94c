"""One supervisord for each cluster: keeps the keeper and the launchers, each a program of its own.

Package `supervisor`, http://supervisord.org. Spoken to over its Unix socket by XML-RPC.
"""

import fcntl
import http.client
import os
import shlex
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil
from supervisor.xmlrpc import Faults, SupervisorTransport

from ...errors import BackendError, Unreachable
from ..folders import make_private, runtime_root
from .places import Places

MARK = "TFDEPLOY_CLUSTER"
"""Every process of a cluster has its home in this variable, as containers have labels."""

# fmt: off
_HANDED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
    "LD_LIBRARY_PATH", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY",
)
# fmt: on
_HANDED_ON_PREFIXES = ("LC_", "XDG_", "CUDA_", "NVIDIA_", "TF_", "OMP_", "MKL_")
_START_SECONDS = 20.0
_KILL_SECONDS = 10.0
_TRIES = 20
_DEAD_WORDS = ("STOPPED", "FATAL", "EXITED", "UNKNOWN")

_CONFIG = """\
[unix_http_server]
file = {socket}
chmod = 0700

[supervisord]
logfile = {home}/supervisord.log
logfile_maxbytes = 1MB
logfile_backups = 1
pidfile = {runtime}/supervisord.pid
directory = {home}
umask = 077

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[include]
files = conf.d/*.conf
"""

_PROGRAM = """\
[program:{name}]
command = {command}
autorestart = unexpected
exitcodes = 0
startsecs = 0
stopwaitsecs = 86400
redirect_stderr = true
stdout_logfile = {log}
stdout_logfile_maxbytes = 1MB
stdout_logfile_backups = 1
"""


def environment() -> dict[str, str]:
    """What of our own environment the tasks get: what finds programs and libraries; nothing of Pulumi's or a cloud's."""
    return {
        name: value for name, value in os.environ.items() if name in _HANDED_ON or name.startswith(_HANDED_ON_PREFIXES)
    }


class Supervisor:
    """A cluster's supervisord, running or not."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def _call(self, method: str, *args: Any) -> Any:
        transport = SupervisorTransport(None, None, f"unix://{self._places.supervisor_socket}")
        proxy = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)
        try:
            return getattr(proxy.supervisor, method)(*args)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"supervisord of {self._places.home} does not answer: {error}") from None
        finally:
            transport.close()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Several tasks are made at once: what changes the supervisord is done by one at a time."""
        with self._lock() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _lock(self) -> IO[str]:
        """The file of the lock. Who takes another cluster away takes the folder too when nothing else is in it at that moment."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                make_private(runtime_root())
                return self._places.lock.open("w")
        raise BackendError(f"{runtime_root()} goes away again and again: look who removes it")

    def running(self) -> bool:
        """Whether it answers."""
        try:
            self._call("getState")
        except Unreachable:
            return False
        return True

    def start(self) -> None:
        """Start it, unless it runs. To be called under the lock."""
        if self.running():
            return
        places = self._places
        make_private(places.runtime)
        places.programs.mkdir(parents=True, exist_ok=True)
        text = _CONFIG.format(
            home=_escaped(places.home), runtime=_escaped(places.runtime), socket=places.supervisor_socket
        )
        places.config.write_text(text)
        command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(places.config)]
        env = {**environment(), MARK: str(places.home)}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(command, env=env, start_new_session=True, check=False, text=True, **streams)  # type: ignore[call-overload]
        if done.returncode:
            raise BackendError(f"supervisord did not start: {done.stdout.strip()}")
        if not _came_true(self.running, _START_SECONDS):
            raise BackendError(f"supervisord of {places.home} did not answer within {_START_SECONDS:g} s")

    def programs(self) -> Mapping[str, Mapping[str, Any]]:
        """Name to what supervisord says of it (`statename`, `pid`, `exitstatus`, …).

        Raises:
            Unreachable: it does not answer.
        """
        return {info["name"]: info for info in self._call("getAllProcessInfo")}

    def add(self, name: str, command: list[str], log: Path, stop_seconds: float) -> None:
        """Have a program run; one of that name that stands already is started where it has ended.

        One that stands with another command is stopped first; it has `stop_seconds` for it.
        """
        text = _PROGRAM.format(name=name, command=_escaped(shlex.join(command)), log=_escaped(log))
        path = self._places.programs / f"{name}.conf"
        with self.locked():
            self.start()
            known = name in self.programs()
            changed = not path.exists() or path.read_text() != text
            path.write_text(text)
            if known and changed:
                self._drop(name, stop_seconds)
            if not known or changed:
                self._call("reloadConfig")
                with _tolerant(Faults.ALREADY_ADDED):
                    self._call("addProcessGroup", name)
        self.wake(name)

    def wake(self, name: str) -> None:
        """Start a program that has ended; one that runs is left alone."""
        with _tolerant(Faults.ALREADY_STARTED):
            if self.programs()[name]["statename"] in _DEAD_WORDS:
                self._call("startProcess", name, False)

    def remove(self, name: str, seconds: float) -> None:
        """Stop a program, by force after so many seconds, and forget it; not there is as good."""
        (self._places.programs / f"{name}.conf").unlink(missing_ok=True)
        with suppress(Unreachable):
            self._drop(name, seconds)

    def restart(self, name: str, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Stop a program, by force after so many seconds, and start it again when `meanwhile` has been done.

        Raises:
            Unreachable: supervisord does not answer.
        """
        with self.locked():
            self._halt(name, seconds)
            meanwhile()
        self.wake(name)

    def _drop(self, name: str, seconds: float) -> None:
        self._halt(name, seconds)
        with _tolerant(Faults.BAD_NAME):
            self._call("removeProcessGroup", name)

    def _halt(self, name: str, seconds: float) -> None:
        def ended() -> bool:
            return name not in (known := self.programs()) or known[name]["statename"] in _DEAD_WORDS

        with _tolerant(Faults.NOT_RUNNING, Faults.BAD_NAME):
            self._call("stopProcess", name, False)
            if not _came_true(ended, seconds):
                self._call("signalProcess", name, "KILL")
                _came_true(ended, _KILL_SECONDS)

    def end(self, seconds: float) -> None:
        """Stop everything it keeps, and itself; then kill whatever still carries the cluster's mark."""
        with suppress(Unreachable, xmlrpc.client.Fault):
            self._call("shutdown")
            _came_true(lambda: not self.running(), seconds)
        deadline = time.monotonic() + _KILL_SECONDS
        while (ours := marked(self._places.home)) and time.monotonic() < deadline:
            for process in ours:
                with suppress(psutil.Error):
                    process.kill()
            time.sleep(0.02)


def marked(home: Path) -> list[psutil.Process]:
    """All processes of the user that carry the cluster's mark."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == str(home) and process.pid != os.getpid():
                found.append(process)
    return found


@contextmanager
def _tolerant(*codes: int) -> Iterator[None]:
    try:
        yield
    except xmlrpc.client.Fault as fault:
        if fault.faultCode not in codes:
            raise BackendError(f"supervisord: {fault.faultString}") from None


def _escaped(text: object) -> str:
    """As supervisord's configuration wants it: `%` begins a reference there."""
    return str(text).replace("%", "%%")


def _came_true(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
