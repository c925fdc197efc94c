"""The controller's HTTP server: who may call what, and how long a body may be.

The token is checked before a body is read. A launcher has another token than the user, which allows only what a launcher does, and
only for its own task.
"""

import hmac
import json
import os
import re
import select
import shutil
import signal
import socket
import socketserver
import threading
import traceback
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, cast
from urllib.parse import unquote

from ..model.run_spec import RunSpec
from ..model.run_state import LauncherReport
from ..model.task_dump import MAX_BYTES
from ..record.record import PROTOCOL, Record, ViewRequest
from ..record.record_files import NAME, Range, RecordList, read_ranges
from ..record.replica import pack
from ..record.run_folders import RunRefused
from ..system.files import write_whole
from ..system.locks import locked
from ..system.parent_death import die_with_parent, yield_to_programs
from ..system.signals import wait_for_signal, wake_main_thread
from ..wire.rpc import GONE, INTERRUPTED_CODE, TOKEN_HEADER, UNIX, CallObsolete, hostname_of, socket_path, task_token
from .clock import Clock
from .controller import Controller
from .record_import import ImportRequest
from .step_watch import StepWatch

MAX_BODY = 4 * 1024 * 1024
"""The longest body of a call, in bytes: a launcher sends its output in such pieces."""

MAX_LOG_BODY = 4 * 1024 * 1024
MAX_CODE_BODY = 512 * 1024 * 1024
"""The longest code archive. What `code` may contain is limited by the plan."""

MAX_IMPORT_BODY = 128 * 1024 * 1024
"""The longest list of the files of a record that is imported."""

_SHORT = 1024
"""The longest body of a call that needs none."""

_DRAINED = 64 * 1024
"""A refused body is read up to this length, so that the caller sees the response."""

MAX_CONNECTIONS = 4096
"""Three for each of 1,000 tasks, and some for users."""

FIRST_SECONDS, IDLE_SECONDS = 10.0, 120.0
"""How long a connection may be silent before it has shown a token, and after that."""

LAUNCHER, ADMIN = "launcher", "administrator"

_RUN, _TASK = f"({NAME})", f"(?P<task>{NAME})"
_ARCHIVE, _NUMBER, _SHA256 = r"([A-Za-z0-9_-][A-Za-z0-9_.-]*)", "([0-9]{1,18})", "([0-9a-f]{64})"


class Caller(NamedTuple):
    """Who calls."""

    role: str
    hostname: str = ""
    """Of the task whose launcher calls; empty for the user."""


class AllowedCall(NamedTuple):
    """One call: who may make it, its method and path, the longest body, what it does with controller, body and the groups of the path.
    The group `task` of a path is the hostname that a launcher must have."""

    role: str
    method: str
    path: str
    longest: int
    action: Callable[..., Any]
    is_report: bool = False
    """The hostname is in the body: `action` also gets a function that refuses another one. A launcher that no longer waits has its
    report ignored: its durations count from when it was sent, and the launcher reports again."""


class NotAllowed(Exception):
    """A launcher calls for another task."""


class Reply(NamedTuple):
    """A response: its status, and its content or the file with it."""

    status: int
    content: bytes = b""
    file: Optional[Path] = None


def _sync(controller: Controller, body: bytes, check: Callable[[str], None]) -> Any:
    report = LauncherReport.from_dict(json.loads(body))
    if not (report.hostname and report.instance):
        raise ValueError("it names no launcher")
    check(report.hostname)
    return controller.sync_json(report)


def _put_log(it: Controller, body: bytes, run: str, task: str, kind: str, first: str, at: str, instance: str) -> Any:
    return {"end": it.put_log(run, task, kind, int(first), int(at), instance, body)}


def _put_part(controller: Controller, body: bytes, run_id: str, hostname: str, draft: str, offset: str) -> Any:
    return {"end": controller.uploads.put(run_id, hostname, draft, int(offset), body)}


def _put_dump(controller: Controller, body: bytes, hostname: str, number: str) -> None:
    controller.dumps.put(hostname, int(number), body)


def _files(controller: Controller, body: bytes) -> Any:
    return {"protocol": PROTOCOL, **controller.list_files(**json.loads(body)).to_dict()}


def _ranges(record: Record, record_id: str, ranges: List[List[Any]]) -> bytes:
    if record_id != record.record_id():
        raise ValueError("this is another record now")
    wanted = [Range(*part) for part in ranges]
    return pack(wanted, read_ranges(record.folder, wanted))


def _stopped(controller: Controller, body: bytes) -> Dict[str, bool]:
    return {"stopped": controller.is_stopped(), **({"uploading": True} if controller.is_uploading() else {})}


def _begin_import(controller: Controller, body: bytes) -> Any:
    return {"wanted": controller.record_import.begin(RecordList.from_dict(json.loads(body)))}


_LOG, _UPLOAD, _RESTORE = f"/log/{_RUN}/{_TASK}", f"/artifacts/{_RUN}/{_TASK}", f"/restore/{_RUN}"
_PIECE = f"(own|apart)/{_NUMBER}/{_NUMBER}/([0-9a-f]{{32}})"

_CALLS_OF: Dict[str, List[Tuple[Any, ...]]] = {
    LAUNCHER: [
        ("POST", "/sync", MAX_BODY, _sync, True),
        ("GET", f"/changes/{_NUMBER}", _SHORT, lambda it, _, number: it.wait_for_change(int(number))),
        ("PUT", f"{_LOG}/{_PIECE}", MAX_LOG_BODY, _put_log),
        ("GET", _LOG, _SHORT, lambda it, _, run, task: {"pieces": it.pieces(run, task)}),
        ("GET", f"/code/{_ARCHIVE}", _SHORT, lambda it, _, code: it.code_path(code)),
        ("PUT", _UPLOAD, MAX_BODY, lambda it, body, *names: it.uploads.begin(*names, json.loads(body))),
        ("PUT", f"{_UPLOAD}/([0-9a-f-]+)/{_NUMBER}", MAX_BODY, _put_part),
        ("POST", f"{_UPLOAD}/whole", MAX_BODY, lambda it, body, *names: it.uploads.store(*names, json.loads(body))),
        ("POST", _UPLOAD, MAX_BODY, lambda it, body, *names: it.uploads.end(*names, json.loads(body))),
        ("PUT", f"/dump/{_TASK}/{_NUMBER}", MAX_BYTES, _put_dump),
        ("GET", _RESTORE, _SHORT, lambda it, _, run: it.restorable(run)),
        ("GET", f"{_RESTORE}/(.+)", _SHORT, lambda it, _, run, path: it.restored_file(run, unquote(path))),
    ],
    ADMIN: [
        ("POST", "/view", MAX_BODY, lambda it, body: it.view(ViewRequest(**json.loads(body))).to_dict()),
        ("POST", "/files", MAX_BODY, _files),
        ("POST", "/ranges", MAX_BODY, lambda it, body: _ranges(it.record, **json.loads(body))),
        ("PUT", "/run", MAX_BODY, lambda it, body: it.submit_run(RunSpec.from_dict(json.loads(body)))),
        ("PUT", f"/code/{_ARCHIVE}", MAX_CODE_BODY, lambda it, body, code: write_whole(it.code_path(code), body)),
        ("POST", "/restarts", MAX_BODY, lambda it, body: it.queue_restarts(**json.loads(body))),
        ("POST", "/new-launcher", MAX_BODY, lambda it, body: it.announce_new_launcher(**json.loads(body))),
        ("POST", "/dumps", _SHORT, lambda it, _: it.dumps.request()),
        ("POST", "/dumps/arrived", MAX_BODY, lambda it, body: it.dumps.arrived(**json.loads(body))),
        ("POST", "/stop", MAX_BODY, lambda it, body: it.stop(**json.loads(body))),
        ("GET", "/stopped", _SHORT, _stopped),
        ("GET", "/unfinished", _SHORT, lambda it, _: it.unfinished()),
        ("PUT", "/import", MAX_IMPORT_BODY, _begin_import),
        ("PUT", "/import/ranges", MAX_IMPORT_BODY, lambda it, body: {"wanted": it.record_import.put(body)}),
        ("POST", "/import", _SHORT, lambda it, body: it.finish_import(ImportRequest.from_dict(json.loads(body)))),
    ],
}
"""Caller to method, path, longest body and action of each call. Launchers send reports, output and artifacts, and get code and
artifacts. The user's computer gets views and copies of the record, and sends the run, and a run that moves to this controller."""

CALLS = [AllowedCall(role, *call) for role, calls in _CALLS_OF.items() for call in calls]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    timeout = FIRST_SECONDS

    def _respond(self) -> None:
        reply = self._reply()
        size = reply.file.stat().st_size if reply.file else len(reply.content)
        self.send_response_only(reply.status)
        self.send_header("Content-Length", str(size))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if reply.file is None:
            self.wfile.write(reply.content)
            return
        with reply.file.open("rb") as file:
            shutil.copyfileobj(file, self.wfile)

    def _reply(self) -> Reply:
        """The response. The body is read only after the token, the path and the length have been checked."""
        server = cast("Server", self.server)
        length = _length(self.headers.get_all("Content-Length") or [], self.headers.get("Transfer-Encoding"))
        caller = server.caller(self.headers.get(TOKEN_HEADER) or "")
        if caller is not None:
            self.connection.settimeout(IDLE_SECONDS)
        route, names, task = server.find(self.command, self.path)
        if length is None:
            return self._refuse(Reply(400, b"the Content-Length is missing or wrong"), 0)
        if caller is None:
            return self._refuse(Reply(403, b"the cluster's token is missing or wrong"), length)
        if route is None:
            return self._refuse(Reply(404, f"unknown call: {self.command} {self.path}".encode()), length)
        refusal = _refusal(server, caller, route, task, length)
        if refusal is not None:
            return self._refuse(refusal, length)
        body = self.rfile.read(length)
        if len(body) < length:
            return self._refuse(Reply(400, b"the body is shorter than its Content-Length"), 0)
        if route.is_report and self._has_hung_up():
            return self._refuse(Reply(408, b"the launcher does not wait for the response"), 0)

        def check(hostname: str) -> None:
            if not server.allows(caller, hostname):
                raise NotAllowed(_not_allowed(caller, hostname))

        return _act(server.controller, route, body, (*names, check) if route.is_report else names)

    def _has_hung_up(self) -> bool:
        """Whether the caller has closed the connection. It sends nothing else while it waits for a response."""
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        return bool(poll.poll(0))

    def _refuse(self, reply: Reply, length: int) -> Reply:
        """Refuse a call, and close the connection; the body is not read further than the caller needs to see why."""
        self.close_connection = True
        with suppress(OSError):
            self.rfile.read(min(length, _DRAINED))
        return reply

    do_GET = do_PUT = do_POST = _respond

    def address_string(self) -> str:
        return "launcher"

    def log_message(self, format: str, *args: Any) -> None:
        """Calls are not logged: there are several a second for each task."""

    def finish(self) -> None:
        with suppress(OSError):  # the caller has gone
            super().finish()


def _length(lengths: List[str], encoding: Optional[str]) -> Optional[int]:
    """The length of the body; None where the headers do not state it."""
    if encoding or len(lengths) > 1 or not all(re.fullmatch("[0-9]{1,18}", text) for text in lengths):
        return None
    return int(lengths[0]) if lengths else 0


def _refusal(server: "Server", caller: Caller, route: AllowedCall, task: str, length: int) -> Optional[Reply]:
    """Why this caller may not make this call, with so long a body; None if it may."""
    if caller.role != ADMIN and route.role == ADMIN:
        return Reply(403, b"the token of launchers does not allow this call")
    if task and not server.allows(caller, task):
        return Reply(403, _not_allowed(caller, task).encode())
    if length > route.longest:
        return Reply(413, f"the body has {length} bytes, and {route.longest} are allowed".encode())
    return None


def _not_allowed(caller: Caller, hostname: str) -> str:
    return f"the token of {caller.hostname or 'launchers'} does not allow calls for {hostname}"


def _act(controller: Controller, route: AllowedCall, body: bytes, names: Tuple[Any, ...]) -> Reply:
    try:
        result = route.action(controller, body, *names)
        if isinstance(result, Path):
            return Reply(200, file=result) if result.is_file() else Reply(404, f"there is no {result.name}".encode())
    except NotAllowed as error:
        return Reply(403, str(error).encode())
    except CallObsolete as error:
        return Reply(GONE, str(error).encode())
    except RunRefused as error:
        return Reply(409, str(error).encode())
    except OSError as error:
        return Reply(507, f"the record cannot be written: {error.strerror or error}".encode())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Reply(400, f"the body is not valid: {error!r}".encode())
    except Exception as error:
        traceback.print_exc()
        return Reply(500, repr(error).encode())
    return Reply(200, result if isinstance(result, bytes) else json.dumps(result or {}).encode())


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1024

    def __init__(self, address: str, token: Path, controller: Controller) -> None:
        self.controller = controller
        self._token = token
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        if address.startswith(UNIX):
            self.address_family = socket.AF_UNIX
            with socket_path(address[len(UNIX) :]) as path:
                if Path(path).exists():
                    Path(path).unlink()
                super().__init__(path, _Handler)  # type: ignore[arg-type]
        else:
            host, _, port = address.rpartition(":")
            super().__init__((host, int(port)), _Handler)

    def caller(self, shown: str) -> Optional[Caller]:
        """Who shows this token; None where the token is wrong."""
        try:
            token = self._token.read_text().strip()
        except OSError:
            return None
        if not token:
            return None
        hostname = hostname_of(shown)
        expected = task_token(token, hostname) if hostname else token
        is_right = hmac.compare_digest(shown.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))
        if not is_right:
            return None
        return Caller(LAUNCHER, hostname) if hostname else Caller(ADMIN)

    def allows(self, caller: Caller, hostname: str) -> bool:
        """Whether a caller may call for this task."""
        return caller.role == ADMIN or caller.hostname == hostname

    def find(self, method: str, path: str) -> Tuple[Optional[AllowedCall], Tuple[str, ...], str]:
        """The route of a call, the names in its path, and the hostname among them; empty without one."""
        for route in CALLS:
            match = re.fullmatch(route.path, path) if route.method == method else None
            if match:
                return route, match.groups(), match.groupdict().get("task", "")
        return None, (), ""

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in another thread; refuse it where there are too many."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the machine has no thread left for it
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that closes its connection early is not an error."""


def run_controller(folder: Path, address: str, token: Path, train_mode: int = 0) -> int:
    """Run the controller of the record in `folder` until a signal stops it; the exit code.

    `token` is a file, which is read at each call. `train_mode` is the mode of a run's folder in `train_dir`, for tasks that run as
    other users than the controller; 0 leaves it to the umask.
    """
    die_with_parent(signal.SIGTERM, os.getppid())
    yield_to_programs()
    with locked(folder):
        clock = Clock()
        controller = Controller(Record(folder), train_mode, clock)
        server = Server(address, token, controller)
        stop_signals = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, {*stop_signals, signal.SIGALRM})
        controller.wake = wake_main_thread
        controller.tick()
        for thread in (server.serve_forever, StepWatch(controller, clock).run):
            threading.Thread(target=thread, daemon=True).start()
        while not wait_for_signal(stop_signals, controller.seconds_until_tick()):
            pause = controller.seconds_until_due()
            if pause and wait_for_signal(stop_signals, pause):
                break
            controller.tick()
        controller.tick()
        server.server_close()
        return INTERRUPTED_CODE
