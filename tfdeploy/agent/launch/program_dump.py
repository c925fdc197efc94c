"""Takes the dump of a program from `/proc`, over about five seconds. The program runs meanwhile."""

import os
import platform
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, Tuple

from ..task_dump import PeerConnection, ProcessDump, TaskDump, Wait
from .activity import members, transferred
from .memory import memory_limit, proportional_bytes, proportional_size
from .python_stacks import StackReader, Stacks, input_thread, take_samples
from .tcp_connections import Socket, counted_sockets, listed_sockets, sockets_of
from .workdir import STACKS_FILE

INTERVAL_SECONDS = 1.0

MAX_PROCESSES, MAX_CONNECTIONS = 32, 500
"""Of more processes, those that use the most processor time are listed; of connections, those with the most bytes."""

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME, _THREADS, _MAJOR_FAULTS = 11, 12, 17, 9
"""Fields of `stat`, counted from the state."""

_X86 = (
    "0 read,1 write,7 poll,17 pread64,19 readv,20 writev,23 select,35 nanosleep,42 connect,43 accept,44 sendto,45 recvfrom,"
    "46 sendmsg,47 recvmsg,61 wait4,72 fcntl,73 flock,74 fsync,202 futex,230 clock_nanosleep,232 epoll_wait,247 waitid,"
    "270 pselect6,271 ppoll,281 epoll_pwait,288 accept4"
)
_ARM = (
    "63 read,64 write,67 pread64,65 readv,66 writev,72 pselect6,73 ppoll,101 nanosleep,203 connect,202 accept,206 sendto,"
    "207 recvfrom,211 sendmsg,212 recvmsg,260 wait4,25 fcntl,32 flock,82 fsync,98 futex,115 clock_nanosleep,22 epoll_pwait,"
    "95 waitid,242 accept4"
)
_CALLS: Dict[str, str] = dict(
    item.split(" ") for item in {"x86_64": _X86, "aarch64": _ARM}.get(platform.machine(), "").split(",") if item
)
"""Numbers of system calls that may take long."""

_WITHOUT_DESCRIPTOR = frozenset(
    ("poll", "ppoll", "select", "pselect6", "nanosleep", "clock_nanosleep", "wait4", "waitid", "futex")
)
_MAX_NAME = 200


class _Moment(NamedTuple):
    """What a process had done at one moment."""

    fields: List[str]
    transferred: int
    call: str
    """The line of `syscall`, which is another one after each return of a call."""
    switches: Tuple[str, ...]


def take_dump(hostname: str, group: int, folder: Path, limit: int) -> TaskDump:
    """The dump of the program of this process group. `folder` is the launcher's; `limit` is in bytes, of all processes."""
    before, sockets = _moments(group), _sockets(group)
    begin = time.monotonic()
    time.sleep(INTERVAL_SECONDS)
    after, sockets_after = _moments(group), _sockets(group)
    interval = time.monotonic() - begin
    lasting = [pid for pid in after if pid in before]
    leader = _leader(lasting)
    inodes = sockets_of(lasting)
    code = _code_folder(leader, folder / "work")
    processes = [_process(pid, before[pid], after[pid], interval, sockets_after, code) for pid in lasting]
    processes.sort(key=lambda process: (process.pid != leader, -process.cpus, process.pid))
    samples = _samples(leader, group, after, StackReader(leader, folder / STACKS_FILE, code))
    bound = memory_limit(limit)
    limited = sum(process.memory if bound == limit else process.anonymous for process in processes)
    connections = _connections(inodes, sockets, sockets_after, samples.sockets)
    notes = [] if sockets_after.has_bytes else [f"no bytes of connections: {sockets_after.problem}"]
    if len(processes) > MAX_PROCESSES:
        notes.append(f"{len(processes) - MAX_PROCESSES} more processes")
    if len(connections) > MAX_CONNECTIONS:
        notes.append(f"{len(connections) - MAX_CONNECTIONS} more connections")
    if samples.problem:
        notes.append(f"no Python stack: {samples.problem}")
    return TaskDump(
        hostname,
        interval,
        processes[:MAX_PROCESSES],
        bound,
        limited,
        connections[:MAX_CONNECTIONS],
        sockets_after.has_bytes,
        samples.stacks[-1].threads if samples.stacks else [],
        [sample.threads[0] for sample in samples.stacks],
        [input_thread(sample) for sample in samples.stacks],
        samples.seconds,
        notes,
    )


class _Samples(NamedTuple):
    """The stacks at some moments, and the sockets of each moment."""

    stacks: List[Stacks]
    sockets: "List[_Sockets]"
    seconds: float
    problem: str
    """Why there are none; empty where there is one."""


def _samples(leader: int, group: int, moments: Dict[int, _Moment], reader: StackReader) -> _Samples:
    stacks: List[Stacks] = []
    sockets: List[_Sockets] = []
    times: List[float] = []
    problem = ""
    for sample in _stacks(leader, moments, reader):
        problem = sample.problem
        if sample.threads:
            times.append(time.monotonic())
            stacks.append(sample)
            sockets.append(_sockets(group))
    return _Samples(stacks, sockets, times[-1] - times[0] if times else 0.0, "" if stacks else problem)


def _stacks(leader: int, moments: Dict[int, _Moment], reader: StackReader) -> Iterable[Stacks]:
    if leader not in moments:
        return []
    if moments[leader].fields[0] in ("T", "t"):
        return [Stacks([], "the process is stopped")]
    if not _is_python(leader):
        return [Stacks([], "the program is not run by Python")]
    return take_samples(reader)


def _code_folder(pid: int, work: Path) -> str:
    """The folder of the run's code, in which the program was started, although it may be in another one now."""
    with suppress(OSError):
        current = Path(os.readlink(str(_PROC / str(pid) / "cwd")))
        if work in current.parents:
            return str(work / current.relative_to(work).parts[0])
    return str(next(work.glob("*"), work))


def _leader(pids: List[int]) -> int:
    """The process that trains: the first one that Python runs, as a shell may have started it; 0 without processes."""
    return next(filter(_is_python, sorted(pids)), min(pids, default=0))


def _is_python(pid: int) -> bool:
    with suppress(OSError):
        return os.path.basename(os.readlink(str(_PROC / str(pid) / "exe"))).startswith("python")  # noqa: PTH119
    return False


def _moments(group: int) -> Dict[int, _Moment]:
    moments = {}
    for pid, fields in members(group).items():
        with suppress(OSError, ValueError, IndexError):
            moments[pid] = _Moment(fields, _transferred(pid), _text(pid, "syscall"), _switches(pid))
    return moments


def _text(pid: int, name: str) -> str:
    """A file about the main thread; empty where it may not be read."""
    with suppress(OSError):
        return (_PROC / str(pid) / "task" / str(pid) / name).read_text(errors="replace").strip()
    return ""


def _switches(pid: int) -> Tuple[str, ...]:
    """How often the main thread has left a processor."""
    return tuple(line for line in _text(pid, "status").splitlines() if "ctxt_switches" in line)


def _transferred(pid: int) -> int:
    with suppress(OSError, ValueError, KeyError):
        return transferred(pid)
    return 0


def _process(pid: int, before: _Moment, after: _Moment, interval: float, sockets: "_Sockets", code: str) -> ProcessDump:
    def rate(*places: int) -> float:
        return sum(int(after.fields[at]) - int(before.fields[at]) for at in places) / interval

    is_same = before.fields[0] == after.fields[0] and before.switches == after.switches
    waits = is_same and before.call == after.call and after.fields[0] != "R"
    return ProcessDump(
        pid,
        _text(pid, "comm")[:_MAX_NAME],
        after.fields[0] if is_same else "",
        int(after.fields[_THREADS]),
        rate(_UTIME, _STIME) / _TICKS,
        proportional_bytes(pid),
        proportional_size(pid, "Pss_Anon"),
        _swapped(pid),
        rate(_MAJOR_FAULTS),
        (after.transferred - before.transferred) / interval,
        _wait(pid, after.call, sockets, code) if waits else None,
    )


def _swapped(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmSwap:")), 0)
    return 0


def _wait(pid: int, call: str, sockets: "_Sockets", code: str) -> Wait:
    words = call.split()
    name = _CALLS.get(words[0], "") if words else ""
    target = ""
    if name and name not in _WITHOUT_DESCRIPTOR:
        with suppress(OSError, ValueError):
            target = os.readlink(str(_PROC / str(pid) / "fd" / str(int(words[1], 16))))
    if target.startswith("socket:[") and target[8:-1] in sockets.by_inode:
        target = sockets.by_inode[target[8:-1]].peer
    target = target[len(code) + 1 :] if target.startswith(f"{code}/") else target
    place = _text(pid, "wchan")
    return Wait(name or (place if place != "0" else ""), target[:_MAX_NAME], _idle_seconds(pid))


def _idle_seconds(pid: int) -> float:
    """For how long the main thread has not run, by the clock of the scheduler; -1 where that is not shown."""
    try:
        return max(0.0, (_last_run(threading.get_native_id(), os.getpid()) - _last_run(pid, pid)) / 1000)
    except (OSError, ValueError, StopIteration):
        return -1.0


def _last_run(thread: int, pid: int) -> float:
    lines = (_PROC / str(pid) / "task" / str(thread) / "sched").read_text().splitlines()
    return next(float(line.split(":")[1]) for line in lines if line.startswith("se.exec_start"))


class _Sockets(NamedTuple):
    """The sockets of the network namespace at one moment."""

    by_inode: Dict[str, Socket]
    has_bytes: bool
    problem: str = ""


def _sockets(group: int) -> _Sockets:
    try:
        return _Sockets(counted_sockets(), True)
    except OSError as error:
        problem = f"sock_diag: {error.strerror or error}"
    with suppress(OSError, ValueError, IndexError):
        return _Sockets(listed_sockets(group), False, problem)
    return _Sockets({}, False, problem)


def _connections(
    inodes: Iterable[str], before: _Sockets, after: _Sockets, samples: List[_Sockets]
) -> List[PeerConnection]:
    """The connections of these sockets. One is not open only where it was not at both moments."""
    connections = []
    for inode in inodes:
        now, earlier = after.by_inode.get(inode), before.by_inode.get(inode)
        if now is None:
            continue
        if now.is_open:
            sent = now.sent - (earlier.sent if earlier else 0)
            received = now.received - (earlier.received if earlier else 0)
            connections.append(PeerConnection(now.local, now.peer, sent, received, _between(inode, samples)))
        elif earlier is not None and not earlier.is_open:
            connections.append(PeerConnection(now.local, now.peer, is_open=False))
    return sorted(connections, key=lambda item: (item.is_open, -item.sent - item.received, item.local))


def _between(inode: str, samples: List[_Sockets]) -> List[int]:
    """The bytes of a connection between each sample and the next; empty where it has none, or is not in all."""
    found = [sample.by_inode[inode] for sample in samples if inode in sample.by_inode]
    totals = [item.sent + item.received for item in found]
    is_whole = len(found) == len(samples) and totals[:1] != totals[-1:]
    return [after - before for before, after in zip(totals, totals[1:])] if is_whole else []
