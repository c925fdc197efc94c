"""Counts of what Python processes do: files opened, HTTP requests, connections, processes started. Tests assert them as numbers,
because they do not scatter as times do.

They are Python's audit events (https://docs.python.org/3/library/audit_events.html). `counting` counts in this process, and
`CountedProcesses` in the processes that a command starts.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

READ, WRITE, REQUEST, BODY, CONNECT, START = "read", "write", "request", "body", "connect", "start"
"""Kinds of acts. A file that is opened for both is written; a request without its body has no BODY."""

PROGRAM, PROVIDER = "pulumi-language-python-exec", "pulumi.dynamic"
"""What is in the command of a Pulumi program, and in that of its dynamic resources."""

_FOLDER = "TFDEPLOY_TESTS_COUNTS"
_REQUEST_LINE = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r\n")
_METHOD = re.compile(rb"<methodName>([\w.]+)</methodName>")
_LONGEST_HEAD = 2000


class Act(NamedTuple):
    """Something that a process did."""

    kind: str
    what: str
    """The path of a file, `METHOD PATH` of a request, the XML-RPC method of a body, the address of a connection, or a command."""
    to: str = ""
    """The address that a request or a body is sent to."""
    size: int = 0
    """The bytes of a request's head, or of a body."""


def _act(event: str, arguments: tuple[Any, ...]) -> Act | None:
    """What an audit event is about; None for all that is not counted."""
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, int) or path is None:
            return None
        return Act(WRITE if (flags or 0) & os.O_ACCMODE else READ, os.fsdecode(path))
    if event == "http.client.send":
        connection, data = arguments
        return _sent(connection, data) if isinstance(data, (bytes, bytearray)) else None
    if event == "socket.connect":
        return Act(CONNECT, _address(arguments[1]))
    if event == "subprocess.Popen":
        return Act(START, " ".join(map(os.fsdecode, arguments[1])))
    return None


def _sent(connection: Any, data: bytes | bytearray) -> Act:
    is_relayed = not hasattr(connection.sock, "getpeername")
    to = connection.host if is_relayed else _address(connection.sock.getpeername())
    head = _REQUEST_LINE.match(data)
    if head:
        return Act(REQUEST, f"{head[1].decode()} {head[2].decode()}", to, len(data))
    method = _METHOD.search(data[:_LONGEST_HEAD])
    return Act(BODY, method[1].decode() if method else "", to, len(data))


def _address(address: Any) -> str:
    if isinstance(address, tuple):
        return f"{address[0]}:{address[1]}"
    return os.fsdecode(address)


class Acts:
    """What one or several processes did."""

    def __init__(self, acts: Iterable[Act] = ()) -> None:
        self.all = list(acts)

    def of(self, kind: str, address: str = "") -> list[Act]:
        """Those of one kind; requests and bodies to one address."""
        return [act for act in self.all if act.kind == kind and (not address or act.to == address)]

    def files(self, kind: str, folder: Path) -> list[str]:
        """The paths that were read, or written, below a folder, relative to it."""
        inside = f"{folder}/"
        return [act.what.removeprefix(inside) for act in self.of(kind) if act.what.startswith(inside)]

    def requests(self, address: str, name: Callable[[str], str] = str) -> "Counter[str]":
        """How many requests of each `METHOD PATH` went to an address; `name` may join several."""
        return Counter(name(act.what) for act in self.of(REQUEST, address))

    def bytes_to(self, address: str) -> int:
        """The bytes that were sent to an address, heads and bodies."""
        return sum(act.size for kind in (REQUEST, BODY) for act in self.of(kind, address))


_open: list[Acts] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    act = _act(event, arguments) if _open else None
    if act:
        for acts in _open:
            acts.all.append(act)


@cache
def _install() -> None:
    sys.addaudithook(_note)  # it cannot be removed again


@contextmanager
def counting() -> Iterator[Acts]:
    """What this process does meanwhile, in all its threads."""
    _install()
    acts = Acts()
    _open.append(acts)
    try:
        yield acts
    finally:
        _open.remove(acts)


class CountedProcesses:
    """Every Python process that a command starts with `environment` counts, and so do those that it starts."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that lead Python to `site/sitecustomize.py`."""
        before = os.environ.get("PYTHONPATH")
        site = str(Path(__file__).parent / "site")
        return {_FOLDER: str(self._folder), "PYTHONPATH": f"{site}:{before}" if before else site}

    def acts(self, command: str) -> Acts:
        """What the processes did that have this text in their command."""
        acts = Acts()
        for path in self._folder.iterdir():
            first, *lines = path.read_text().splitlines()
            if command in first:
                acts.all += [Act(*json.loads(line)) for line in lines]
        return acts

    def commands(self) -> list[str]:
        """The command of each process."""
        return [path.read_text().partition("\n")[0] for path in self._folder.iterdir()]


def count_this_process() -> None:
    """Write what this process does from now on into a file, if the environment asks for it."""
    folder = os.environ.get(_FOLDER)
    if not folder:
        return
    file = os.open(f"{folder}/{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, " ".join(sys.orig_argv).replace("\n", " ").encode() + b"\n")

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        act = _act(event, arguments)
        if act:
            os.write(file, json.dumps(act).encode() + b"\n")

    sys.addaudithook(note)


class Linear(NamedTuple):
    """A number that grows with the number of tasks."""

    once: int
    each: int = 0

    def of(self, tasks: int) -> int:
        """The number for so many tasks."""
        return self.once + self.each * tasks


def expected(numbers: Mapping[str, Linear], tasks: int) -> dict[str, int]:
    """The numbers for so many tasks."""
    return {name: number.of(tasks) for name, number in numbers.items()}
