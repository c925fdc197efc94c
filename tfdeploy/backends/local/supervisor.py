"""One supervisord for each cluster: it supervises the controller and the launchers as separate programs.

Package `supervisor`, http://supervisord.org. It is called by XML-RPC over its Unix socket.
"""

import fcntl
import hashlib
import http.client
import os
import resource
import shlex
import socket
import sys
import time
import xmlrpc.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...agent.system.files import write_whole
from ...agent.system.polling import wait_until
from ...agent.system.processes import CLUSTER_MARK, environment_marks
from ...agent.wire.rpc import socket_path
from ...errors import BackendError, Unreachable
from ...paths import make_private
from ...program.plugin_exit import is_cancelled
from .paths import Places

if TYPE_CHECKING:  # whoever only observes a cluster lists no processes
    import psutil

MARK = CLUSTER_MARK
"""Every process of a cluster has the cluster's home in this environment variable, as containers have labels."""

# fmt: off
_PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
    "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY",
)
# fmt: on
_PASSED_PREFIXES = ("LC_", "XDG_", "CUDA_", "NVIDIA_", "TF_", "OMP_", "MKL_")
_START_SECONDS = 20.0
_CALL_SECONDS = 10.0
_KILL_SECONDS = 10.0
_MOMENT_SECONDS = 2.0
_PAUSE = 0.02
_PRIVATE_UMASK = 0o077
_ATTEMPTS = 20
_DEAD_STATES = ("STOPPED", "FATAL", "EXITED", "UNKNOWN")

_OWN_FILES, _FILES_OF_PROGRAM = 48, 3
"""A supervisord has two pipes and a log for each program. It creates a program with two more pipes, and its own files and those of a
request are open meanwhile. The controller has less."""

_MOST_FILES = 4096
"""Enough for the most tasks of a cluster. Each start of a program closes so many numbers of files."""

_CONFIG = """\
[unix_http_server]
file = /proc/self/cwd/supervisor.sock
chmod = 0700

[supervisord]
logfile = supervisord.log
logfile_maxbytes = 1MB
logfile_backups = 1
pidfile = supervisord.pid
umask = {umask:03o}
minfds = {files}

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[include]
files = conf.d/*.conf
"""

"""The working directory of the supervisord is the home of the cluster. All paths are relative to it: the characters of its path may
have a meaning in this file (`%`, ` ;`, line feeds) or in the patterns of its `include`."""

_MODULE = "supervisor.supervisord"
_CONFIG_PATH = "/proc/self/cwd/supervisord.conf"

_PROGRAM = """\
[program:{name}]
; the hash of its command: {digest}
command = /bin/sh conf.d/{name}.sh
autorestart = unexpected
exitcodes = 0
startsecs = 0
stopwaitsecs = 86400
redirect_stderr = true
umask = {umask:03o}
stdout_logfile = {log}
stdout_logfile_maxbytes = 1MB
stdout_logfile_backups = 1
"""


def environment() -> dict[str, str]:
    """The environment variables that tasks inherit: they find programs and libraries. Variables of Pulumi or a cloud are not passed."""
    return {name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)}


def needed_files(tasks: int) -> int:
    """The open files of a supervisord with so many tasks, and with the controller."""
    return _OWN_FILES + _FILES_OF_PROGRAM * (tasks + 1)


def most_tasks(limit: int) -> int:
    """The most tasks for which so many open files suffice."""
    return max(0, (limit - _OWN_FILES) // _FILES_OF_PROGRAM - 1)


def allowed_files() -> int:
    """The hard limit of this process, up to what a cluster may need: a supervisord raises its limit so far."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)


class Faults:
    """Codes of supervisord's faults, as in `supervisor.xmlrpc`: importing that takes longer than all calls of a command."""

    SHUTDOWN_STATE, BAD_NAME, ALREADY_STARTED, NOT_RUNNING, ALREADY_ADDED = 6, 10, 60, 70, 90


class _Transport(xmlrpc.client.Transport):
    """Calls over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        """Connect to the socket, whatever the host is called."""
        connection = http.client.HTTPConnection("localhost")
        self._connection = host, connection
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(_CALL_SECONDS)
        with socket_path(str(self._path)) as path:
            connection.sock.connect(path)
        return connection


class Silent(BackendError):
    """A supervisord that lives and does not respond: it still has its programs."""

    def __init__(self, pid: str, wrong: str, remedy: str) -> None:
        self.wrong = f"supervisord (process {pid}) {wrong}"
        super().__init__(f"{self.wrong}. {remedy}")


class Supervisor:
    """A cluster's supervisord, running or not. Its methods raise `Silent`."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def _call(self, method: str, *args: Any) -> Any:
        """The response to a call. Without a socket a supervisord may begin to listen, or end, within a moment."""
        deadline = time.monotonic() + _MOMENT_SECONDS
        while True:
            try:
                return self._response(method, *args)
            except (OSError, http.client.HTTPException) as error:
                if not self.lives():
                    raise Unreachable(f"supervisord of {self._places.home} does not respond: {error}") from None
                if time.monotonic() > deadline:
                    raise self._unreachable(self._pid()) from None
            time.sleep(_PAUSE)

    def _response(self, method: str, *args: Any) -> Any:
        transport = _Transport(self._places.supervisor_socket)
        proxy = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)
        try:
            return getattr(proxy.supervisor, method)(*args)
        except TimeoutError:
            pid, wrong = self._pid(), f"has not responded for {_CALL_SECONDS:g} s"
            raise Silent(pid, wrong, f"`kill -CONT {pid}` continues it if it is suspended.") from None
        except xmlrpc.client.Fault as fault:
            if fault.faultCode != Faults.SHUTDOWN_STATE:
                raise
            raise Unreachable(f"supervisord of {self._places.home} is shutting down") from None
        finally:
            transport.close()

    def locked(self) -> IO[str]:
        """The file of the lock, locked until it is closed: tasks are created in parallel, and only one may change the supervisord then.

        A deletion of the cluster deletes the file under its lock. The lock of a deleted file excludes no other process, so it counts
        only while the path still names that file; otherwise the next attempt opens a new one.
        """
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                make_private(self._places.lock.parent)
                lock = self._places.lock.open("w")
                fcntl.flock(lock, fcntl.LOCK_EX)
                if _is_at(self._places.lock, lock):
                    return lock
                lock.close()
        raise BackendError(f"{self._places.lock} is deleted again and again. Find out what deletes it.")

    def running(self) -> bool:
        """Whether it responds."""
        try:
            self._call("getState")
        except Unreachable:
            return False
        return True

    def _pid(self) -> str:
        path = self._places.supervisor_pid
        return path.read_text().strip() if path.exists() else "?"

    def _unreachable(self, pid: str) -> Silent:
        wrong = f"runs, and cannot be reached: its socket {self._places.supervisor_socket} is gone"
        remedy = f"The training continues. `kill {pid}` ends it; then `pulumi up --refresh` resumes it from its last checkpoint."
        return Silent(pid, wrong, remedy)

    def lives(self) -> bool:
        """Whether its process exists, with or without a socket."""
        with suppress(FileNotFoundError), self._places.supervisor_lock.open() as lock:
            return not _locks(lock, fcntl.LOCK_SH)
        return False

    def start(self) -> None:
        """Start it, unless it runs. To be called under the lock. It inherits the lock that says that it lives.

        Raises:
            Silent: it lives, and cannot be reached.
        """
        if self.running():
            return
        import subprocess  # takes long to load

        import psutil

        places = self._places
        places.programs.mkdir(parents=True, exist_ok=True)
        write_whole(places.config, _CONFIG.format(umask=_PRIVATE_UMASK, files=allowed_files()))
        command = [sys.executable, "-P", "-m", _MODULE, "-c", _CONFIG_PATH]
        env = {**environment(), MARK: str(places.home)}
        streams = {
            "cwd": places.home,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }
        with places.supervisor_lock.open("w") as lock:
            if not _wait_until(lambda: _locks(lock, fcntl.LOCK_EX), _START_SECONDS):
                raise self._unreachable(self._pid())
            for process in marked(places.home):  # the home may be another than that of which it has locked the file
                with suppress(psutil.Error):
                    if _MODULE in process.cmdline():
                        raise self._unreachable(str(process.pid))
            streams["pass_fds"] = (lock.fileno(),)
            completed = subprocess.run(command, env=env, start_new_session=True, check=False, text=True, **streams)  # type: ignore[call-overload]
        if completed.returncode:
            raise BackendError(f"supervisord did not start: {completed.stdout.strip()}")
        if not _wait_until(self.running, _START_SECONDS):
            raise BackendError(f"supervisord of {places.home} did not respond within {_START_SECONDS:g} s")

    def programs(self) -> Mapping[str, Mapping[str, Any]]:
        """Name of each program to supervisord's information about it (`statename`, `pid`, `exitstatus`, …).

        Raises:
            Unreachable: it does not respond.
        """
        return {info["name"]: info for info in self._call("getAllProcessInfo")}

    def program(self, name: str) -> Mapping[str, Any] | None:
        """supervisord's information about one program; None where it has none of this name.

        Raises:
            Unreachable: it does not respond.
        """
        try:
            info: Mapping[str, Any] = self._call("getProcessInfo", name)
        except xmlrpc.client.Fault as fault:
            if fault.faultCode != Faults.BAD_NAME:
                raise
            return None
        return info

    def add(self, name: str, command: list[str], log: Path, stop_seconds: float, umask: int = _PRIVATE_UMASK) -> None:
        """Create and start a program, with its `log` in the home of the cluster. An existing program of that name is only started,
        if it has ended.

        If its command is another, it is stopped first, within `stop_seconds`.
        """
        script = f"exec {shlex.join(command)}\n"
        digest = hashlib.sha256(script.encode()).hexdigest()
        text = _PROGRAM.format(name=name, digest=digest, log=log.relative_to(self._places.home), umask=umask)
        path = self._places.programs / f"{name}.conf"
        with self.locked():
            existing = self._started_program(name)
            is_same = path.exists() and path.read_text(encoding="utf-8") == text
            if not is_same:
                write_whole(path.with_suffix(".sh"), script)
                write_whole(path, text)  # a torn one would make supervisord refuse all others
            if existing is None or not is_same:
                if existing is not None:
                    self._drop(name, stop_seconds)
                self._call("reloadConfig")
                with _tolerant(Faults.ALREADY_ADDED):
                    self._call("addProcessGroup", name)  # supervisord starts it
                return
        self._wake(name, existing)

    def _started_program(self, name: str) -> Mapping[str, Any] | None:
        """The same as `program`; supervisord is started where it does not run. To be called under the lock."""
        with suppress(Unreachable):
            return self.program(name)
        self.start()
        return self.program(name)

    def wake(self, name: str) -> None:
        """Start a program that has ended; do nothing if it runs.

        Raises:
            KeyError: it does not exist.
        """
        existing = self.program(name)
        if existing is None:
            raise KeyError(name)
        self._wake(name, existing)

    def _wake(self, name: str, existing: Mapping[str, Any]) -> None:
        if existing["statename"] in _DEAD_STATES:
            with _tolerant(Faults.ALREADY_STARTED):
                self._call("startProcess", name, False)

    def remove(self, name: str, seconds: float) -> None:
        """Stop a program, by force after so many seconds, and remove it, if it exists."""
        for suffix in ("conf", "sh"):
            (self._places.programs / f"{name}.{suffix}").unlink(missing_ok=True)
        with suppress(Unreachable):
            self._drop(name, seconds)

    def restart(self, name: str, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Stop a program, by force after so many seconds, and start it again after `meanwhile` has returned.

        Raises:
            Unreachable: supervisord does not respond.
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
            program = self.program(name)
            return program is None or program["statename"] in _DEAD_STATES

        with _tolerant(Faults.NOT_RUNNING, Faults.BAD_NAME):
            self._call("stopProcess", name, False)
            if not _wait_until(ended, seconds):
                self._call("signalProcess", name, "KILL")
                _wait_until(ended, _KILL_SECONDS)

    def end(self, seconds: float) -> None:
        """Stop all programs and the supervisord; then kill every process that still has the cluster's mark."""
        with suppress(Unreachable, Silent):
            self._call("shutdown")
            _wait_until(lambda: not self.running(), seconds)

        import psutil

        def none_is_left() -> bool:
            processes = marked(self._places.home)
            for process in processes:
                with suppress(psutil.Error):
                    process.kill()
            return not processes

        wait_until(none_is_left, _KILL_SECONDS, _PAUSE)


def marked(home: Path) -> "list[psutil.Process]":
    """All processes of the user that have the cluster's mark.

    A shell in which the user works may have it too, and `pulumi destroy` may be typed there: the ancestors of this process and all
    processes of its session do not count. The supervisord, with all launchers and tasks, has another session.
    """
    import psutil

    own = {os.getpid(), *(process.pid for process in psutil.Process().parents())}
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            is_marked = environment_marks(process.pid)[1] == str(home)
            if is_marked and process.pid not in own and os.getsid(process.pid) != os.getsid(0):
                processes.append(process)
    return processes


def _locks(file: IO[str], kind: int) -> bool:
    """Whether this process gets a lock of a file at once."""
    with suppress(BlockingIOError):
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        return True
    return False


def _is_at(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _tolerant(*codes: int) -> Iterator[None]:
    try:
        yield
    except xmlrpc.client.Fault as fault:
        if fault.faultCode not in codes:
            raise BackendError(f"supervisord: {fault.faultString}") from None


def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    is_true = wait_until(lambda: condition() or is_cancelled(), seconds, _PAUSE)
    if is_cancelled() and not condition():
        raise BackendError("a signal to `pulumi` has ended the wait for supervisord. Run the command again")
    return is_true
