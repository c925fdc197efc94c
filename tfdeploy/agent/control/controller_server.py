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
from ..model.sync import LauncherReport
from ..model.task_dump import MAX_BYTES
from ..record.record import PROTOCOL, Record, ViewRequest
from ..record.record_files import Range, RecordList, read_ranges
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

_NAME = "[A-Za-z0-9][A-Za-z0-9_-]*"
"""Ids of runs and hostnames, which become names of folders."""

_RUN, _TASK = f"({_NAME})", f"(?P<task>{_NAME})"
_ARCHIVE, _NUMBER, _SHA256 = r"([A-Za-z0-9_-][A-Za-z0-9_.-]*)", "([0-9]{1,18})", "([0-9a-f]{64})"


class Caller(NamedTuple):
    """Who calls."""

    role: str
    hostname: str = ""
    """Of the task whose launcher calls; empty for the user."""


class AllowedCall(NamedTuple):
    """One call: who may make it, its method and path, the longest body, what it does. The group `task` of a path is the hostname that a
    launcher must have."""

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


def _routes_of_launchers(controller: Controller) -> List[AllowedCall]:
    """What launchers call: reports, output, code, artifacts, and the artifacts of a run that has moved here."""
    log, upload, restore = f"/log/{_RUN}/{_TASK}", f"/artifacts/{_RUN}/{_TASK}", f"/restore/{_RUN}"

    def put_log(body: bytes, run_id: str, hostname: str, kind: str, first: str, at: str, instance: str) -> Any:
        return {"end": controller.put_log(run_id, hostname, kind, int(first), int(at), instance, body)}

    def put_part(body: bytes, run_id: str, hostname: str, draft: str, offset: str) -> Any:
        return {"end": controller.uploads.put(run_id, hostname, draft, int(offset), body)}

    def put_dump(body: bytes, hostname: str, number: str) -> Any:
        controller.dumps.put(hostname, int(number), body)

    def call(method: str, path: str, action: Callable[..., Any], longest: int = _SHORT) -> AllowedCall:
        return AllowedCall(LAUNCHER, method, path, longest, action)

    return [
        AllowedCall(LAUNCHER, "POST", "/sync", MAX_BODY, lambda body, check: _sync(controller, body, check), True),
        call("GET", f"/changes/{_NUMBER}", lambda _, number: controller.wait_for_change(int(number))),
        call("PUT", f"{log}/(own|apart)/{_NUMBER}/{_NUMBER}/([0-9a-f]{{32}})", put_log, MAX_LOG_BODY),
        call("GET", log, lambda _, run_id, hostname: {"pieces": controller.pieces(run_id, hostname)}),
        call("GET", f"/code/{_ARCHIVE}", lambda _, code: controller.code_path(code)),
        call("PUT", upload, lambda body, run, task: controller.uploads.begin(run, task, json.loads(body)), MAX_BODY),
        call("PUT", f"{upload}/([0-9a-f-]+)/{_NUMBER}", put_part, MAX_BODY),
        call(
            "POST",
            f"{upload}/whole",
            lambda body, run, task: controller.uploads.store(run, task, json.loads(body)),
            MAX_BODY,
        ),
        call("POST", upload, lambda body, run, task: controller.uploads.end(run, task, json.loads(body)), MAX_BODY),
        call("PUT", f"/dump/{_TASK}/{_NUMBER}", put_dump, MAX_BYTES),
        call("GET", restore, lambda _, run_id: controller.restorable(run_id)),
        call("GET", f"{restore}/(.+)", lambda _, run_id, path: controller.restored_file(run_id, unquote(path))),
    ]


def _routes_of_users(controller: Controller) -> List[AllowedCall]:
    """What the user's computer calls: views and copies of the record, the run, and a run that moves from or to this controller."""

    def files(body: bytes) -> Any:
        return {"protocol": PROTOCOL, **controller.list_files(**json.loads(body)).to_dict()}

    def begin_import(body: bytes) -> Any:
        return {"wanted": controller.record_import.begin(RecordList.from_dict(json.loads(body)))}

    def put_ranges(body: bytes) -> Any:
        return {"wanted": controller.record_import.put(body)}

    def finish_import(body: bytes) -> Any:
        return controller.finish_import(ImportRequest.from_dict(json.loads(body)))

    def call(method: str, path: str, action: Callable[..., Any], longest: int = MAX_BODY) -> AllowedCall:
        return AllowedCall(ADMIN, method, path, longest, action)

    return [
        call("POST", "/view", lambda body: controller.view(ViewRequest(**json.loads(body))).to_dict()),
        call("POST", "/files", files),
        call("POST", "/ranges", lambda body: _ranges(controller.record, **json.loads(body))),
        call("PUT", "/run", lambda body: controller.submit_run(RunSpec.from_dict(json.loads(body)))),
        call(
            "PUT", f"/code/{_ARCHIVE}", lambda body, code: write_whole(controller.code_path(code), body), MAX_CODE_BODY
        ),
        call("POST", "/restarts", lambda body: controller.queue_restarts(json.loads(body)["hostnames"])),
        call("POST", "/new-launcher", lambda body: controller.announce_new_launcher(**json.loads(body))),
        call("POST", "/dumps", lambda _: controller.dumps.request(), _SHORT),
        call("POST", "/dumps/arrived", lambda body: controller.dumps.arrived(**json.loads(body))),
        call("POST", "/stop", lambda body: _stop(controller, json.loads(body))),
        call("GET", "/stopped", lambda _: _stopped(controller)),
        call("GET", "/unfinished", lambda _: controller.unfinished()),
        call("PUT", "/import", begin_import, MAX_IMPORT_BODY),
        call("PUT", "/import/ranges", put_ranges, MAX_IMPORT_BODY),
        call("POST", "/import", finish_import, _SHORT),
    ]


def _stopped(controller: Controller) -> Dict[str, bool]:
    return {"stopped": controller.is_stopped(), **({"uploading": True} if controller.is_uploading() else {})}


def _stop(controller: Controller, data: Dict[str, Any]) -> None:
    hostnames, auxiliary = data.get("hostnames", []), data.get("auxiliary", True)
    controller.stop(hostnames, auxiliary, data.get("time_limit", 0.0), data.get("to_move", False))


def _sync(controller: Controller, body: bytes, check: Callable[[str], None]) -> Any:
    report = LauncherReport.from_dict(json.loads(body))
    check(report.hostname)
    return controller.sync_json(report)


def _ranges(record: Record, record_id: str, ranges: List[List[Any]]) -> bytes:
    if record_id != record.record_id():
        raise ValueError("this is another record now")
    wanted = [Range(*part) for part in ranges]
    return pack(wanted, read_ranges(record.folder, wanted))


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

        return _act(route, body, (*names, check) if route.is_report else names)

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


def _act(route: AllowedCall, body: bytes, names: Tuple[Any, ...]) -> Reply:
    try:
        result = route.action(body, *names)
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
        self._token = token
        self._routes = [
            (route, re.compile(route.path))
            for route in [*_routes_of_launchers(controller), *_routes_of_users(controller)]
        ]
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
        for route, pattern in self._routes:
            match = pattern.fullmatch(path) if route.method == method else None
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
