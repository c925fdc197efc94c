"""`server.py SOCKET MODULE...`: has imported what every program and provider imports of Pulumi, and forks a process for each of them,
and for the command of tfdeploy.

A fork has the arguments, environment, folder and streams of the client that it works for, and nothing of another fork. It is only made
where Python would start in the same way as it has started here. The server ends when its standard input does.
"""

import _thread
import gc
import importlib
import io
import os
import runpy
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TextIO

PRELOADED = (
    *("pulumi.dynamic", "pulumi.runtime.proto.provider_pb2_grpc"),
    *("dill", "grpc._channel", "grpc._server", "pathspec", "psutil"),
)
"""No module of grpc has threads before there is a channel or a server."""

PROGRAMS, PROVIDER = ("pulumi-language-python-exec", "tfdeploy"), ["-u", "-m", "pulumi.dynamic"]

_PREFIX = 5
"""Arguments of a client before those of Python: `PYTHON -IS client.py SOCKET PYTHON`."""

_VARIABLES = (b"PYTHON", b"LANG", b"LC_", b"LD_", b"GRPC_", b"PSUTIL_")
"""The beginnings of names that Python or a module of `PRELOADED` reads when it is loaded."""

_INHERITED = ("Umask", "Uid", "Gid", "Groups", "CapEff")


@dataclass
class Start:
    """What a client has asked for."""

    client: int
    connection: socket.socket
    streams: list[int]
    arguments: list[str]
    ignored: set[int]
    """The signals that Python ignores from its start."""


class Server:
    """Forks for clients, and reports to each how its fork has ended."""

    def __init__(self, address: str) -> None:
        self._conditions = _conditions("self")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(100)
        self._forks: dict[int, tuple[int, socket.socket]] = {}
        self._events = selectors.DefaultSelector()
        self._events.register(sys.stdin.fileno(), selectors.EVENT_READ)
        self._events.register(self._listener, selectors.EVENT_READ)

    def serve(self) -> Start | None:
        """In a fork, what it has to run; None at the end of the server."""
        while True:
            for key, _ in self._events.select():
                if key.fd in self._forks:
                    self._report(key.fd)
                elif key.fileobj is not self._listener:
                    return None
                elif start := self._accept():
                    return start

    def _accept(self) -> Start | None:
        connection, _ = self._listener.accept()
        child, streams, arguments, ignored = -1, list[int](), list[str](), set[int]()
        client = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4), sys.byteorder)
        with suppress(OSError):  # the client has ended
            streams = socket.recv_fds(connection, 16, 3)[1]
            arguments = [os.fsdecode(each) for each in _parts(client, "cmdline")][_PREFIX:]
            ignored = _ignored(client)  # before it gets an answer, and handles signals
            if _is_known(arguments) and _conditions(str(client)) == self._conditions:
                child = os.fork()
        if child == 0:
            self._close()
            return Start(client, connection, streams, arguments, ignored)
        for stream in streams:
            os.close(stream)
        if child > 0:
            descriptor = os.pidfd_open(child)
            self._forks[descriptor] = child, connection
            self._events.register(descriptor, selectors.EVENT_READ)
        _send(connection, max(child, 0))
        return None

    def _report(self, descriptor: int) -> None:
        """A fork has ended."""
        self._events.unregister(descriptor)
        child, connection = self._forks.pop(descriptor)
        os.close(descriptor)
        _send(connection, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        connection.close()

    def _close(self) -> None:
        self._listener.close()
        self._events.close()
        for descriptor, (_, connection) in self._forks.items():
            os.close(descriptor)
            connection.close()


def _send(connection: socket.socket, number: int) -> None:
    with suppress(OSError):
        connection.send(number.to_bytes(4, sys.byteorder, signed=True))


def _parts(process: int | str, file: str) -> list[bytes]:
    return Path(f"/proc/{process}/{file}").read_bytes().split(b"\0")[:-1]


def _is_known(arguments: list[str]) -> bool:
    return arguments[:3] == PROVIDER or Path(*arguments[:1]).name in PROGRAMS


def _conditions(process: str) -> list[object]:
    """What a fork has from the server, where a process that Pulumi starts has it from Pulumi."""
    folder = Path("/proc", process)
    return [
        sorted(each for each in _parts(process, "environ") if each.startswith(_VARIABLES)),
        [line for line in (folder / "status").read_text().splitlines() if line.startswith(_INHERITED)],
        (folder / "limits").read_text(),
        sorted(each.readlink() for each in (folder / "ns").iterdir()),
    ]


def _ignored(process: int) -> set[int]:
    status = Path(f"/proc/{process}/status").read_text()
    mask = int(status.partition("SigIgn:")[2].split()[0], 16)
    return {number for number in signal.valid_signals() if mask >> number - 1 & 1}


def _ignore(ignored: set[int]) -> None:
    """Ignore these signals alone. A server that a shell has started in the background ignores more than a process of Pulumi."""
    for number in signal.valid_signals():
        if number in ignored:
            signal.signal(number, signal.SIG_IGN)
        elif signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _take_over(start: Start) -> None:
    """Become the process that the client would be."""
    os.setsid()
    _ignore(start.ignored)
    mask = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())  # its thread gets none
    _thread.start_new_thread(_follow, (start.connection,))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, stream in enumerate(start.streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(f"/proc/{start.client}/cwd")
    os.environb.clear()
    for each in _parts(start.client, "environ"):
        name, _, value = each.partition(b"=")
        os.environb[name] = value
    time.tzset()
    importlib.invalidate_caches()
    is_unbuffered = start.arguments[0] == "-u" or bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = _stream(0, sys.stdin, is_unbuffered)
    sys.stdout = _stream(1, sys.stdout, is_unbuffered)
    sys.stderr = _stream(2, sys.stderr, is_unbuffered)
    sys.modules["__main__"] = ModuleType("__main__")
    sys.orig_argv = [sys.executable, *start.arguments]
    _execute_again("tfdeploy")  # it changes how a process prints errors


def _execute_again(package: str) -> None:
    """Have a package executed when it is imported next, with the modules in it that are imported already."""
    module = sys.modules.pop(package, None)
    if module and module.__spec__:
        spec = module.__spec__
        spec.loader.create_module = lambda _: module  # type: ignore[method-assign, union-attr]
        finder = SimpleNamespace(find_spec=lambda name, *_: spec if name == package else None)
        sys.meta_path.insert(0, finder)


def _follow(connection: socket.socket) -> None:
    """Send this process the signals of the client. Pulumi kills the client's process group: then this one has to end."""
    with suppress(ConnectionError):
        while number := connection.recv(1):
            os.kill(os.getpid(), number[0])
    os.killpg(0, signal.SIGKILL)


def _stream(descriptor: int, former: TextIO, is_unbuffered: bool) -> io.TextIOWrapper:
    """As Python makes them at its start."""
    mode, size = ("rb", -1) if descriptor == 0 else ("wb", 0 if is_unbuffered else -1)
    is_by_line = not is_unbuffered and (descriptor == 2 or os.isatty(descriptor))
    binary = os.fdopen(descriptor, mode, size, closefd=False)
    return io.TextIOWrapper(binary, former.encoding, former.errors, "\n", is_by_line, is_unbuffered)


def _run(arguments: list[str]) -> None:
    if arguments[:3] == PROVIDER:
        sys.path[0] = str(Path.cwd())
        sys.argv = arguments[2:]
        runpy._run_module_as_main(arguments[2])  # type: ignore[attr-defined]  # what `-m` calls
    else:
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


def main() -> None:
    """Serve, and run a program in each fork."""
    for module in (*PRELOADED, *sys.argv[2:]):
        imported = importlib.import_module(module)
        hasattr(imported, "any")  # the parts of `pulumi_aws` are loaded when one asks for an attribute
    if len([*Path("/proc/self/task").iterdir()]) > 1:
        sys.exit("a module has started a thread, which a fork would not have")
    gc.collect()
    gc.freeze()
    server = Server(sys.argv[1])
    print("ready", flush=True)
    if start := server.serve():
        _take_over(start)
        _run(start.arguments)


main()
