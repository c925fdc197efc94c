"""The controller's HTTP server: who may call what, how long a body may be, how many connections there may be.

The token is checked before a body is read. Launchers have another token, which does not allow what only the user may do.
"""

import hmac
import json
import os
import re
import shutil
import signal
import socket
import socketserver
import threading
import traceback
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple, cast
from urllib.parse import unquote

from . import workdir
from .artifact_store import UploadUnknown
from .controller import Controller
from .lead import die_with_parent, yield_to_programs
from .process import wait_for_signal, wake_main_thread
from .record import Record, ViewRequest
from .record_import import ImportRequest
from .record_sync import CopyPosition
from .rpc import GONE, INTERRUPTED_CODE, TOKEN_HEADER, UNIX, launcher_token
from .run_spec import RunSpec
from .sync import LauncherReport
from .upload_calls import UploadRefused

TICK_SECONDS = 0.25
"""How often time takes effect, as for timeouts."""

MAX_BODY = 4 * 1024 * 1024
"""The longest body of a call, in bytes: a launcher sends its output in such pieces."""

MAX_LOG_BODY = 4 * 1024 * 1024
MAX_CODE_BODY = 512 * 1024 * 1024
"""The longest code archive. What `code` may contain is limited by the plan."""

MAX_IMPORT_BODY = 32 * 1024 * 1024
"""The longest part of a record that is imported."""

MAX_CONNECTIONS = 4096
"""Three for each of 1,000 tasks, and some for users."""

MAX_STRANGERS = 256
"""How many connections may be open that have not shown a token yet."""

_STRANGER_SECONDS, _IDLE_SECONDS = 10.0, 120.0
"""How long a connection may be silent, before and after its first call with a token."""

_SHORT = 1024
"""The longest body of a call that needs none."""

_DRAINED = 64 * 1024
"""A refused body is read up to this length, so that the caller sees the response."""

LAUNCHER, ADMIN = "launcher", "administrator"


class AllowedCall(NamedTuple):
    """One call: who may make it, its method and path, the longest body, what it does."""

    role: str
    method: str
    path: str
    longest: int
    action: Callable[..., Any]


class Reply(NamedTuple):
    """A response: its status, and its content or the file with it."""

    status: int
    content: bytes = b""
    file: Optional[Path] = None


def _routes(controller: Controller) -> List[AllowedCall]:
    name = r"([A-Za-z0-9_-][A-Za-z0-9_.-]*)"
    stream = f"/log/{name}/{name}/(stdout|stderr|index)/([0-9]{{1,18}})"

    def put_log(body: bytes, run_id: str, hostname: str, stream: str, position: str) -> Any:
        return {"end": controller.put_log(run_id, hostname, stream, int(position), body)}

    def log_ends(_: bytes, run_id: str, hostname: str) -> Any:
        return controller.log_ends(run_id, hostname)

    upload = f"/artifacts/{name}/{name}"
    number, digest = "([0-9]{1,18})", "([0-9a-f]{64})"

    def begin_upload(body: bytes, run_id: str, hostname: str) -> Any:
        return {"ends": controller.begin_upload(run_id, hostname, json.loads(body))}

    def put_part(body: bytes, run_id: str, hostname: str, index: str, offset: str, sha256: str) -> Any:
        return {"end": controller.put_part(run_id, hostname, int(index), int(offset), sha256, body)}

    def finish_file(body: bytes, run_id: str, hostname: str, index: str) -> Any:
        return {"end": controller.finish_file(run_id, hostname, int(index), json.loads(body)["sha256"])}

    def end_upload(body: bytes, run_id: str, hostname: str) -> Any:
        return controller.end_upload(run_id, hostname, json.loads(body))

    def admin(method: str, path: str, action: Callable[..., Any], longest: int = MAX_BODY) -> AllowedCall:
        return AllowedCall(ADMIN, method, path, longest, action)

    return [
        AllowedCall(LAUNCHER, "POST", "/sync", MAX_BODY, lambda body: _sync(controller, json.loads(body))),
        AllowedCall(LAUNCHER, "PUT", stream, MAX_LOG_BODY, put_log),
        AllowedCall(LAUNCHER, "GET", f"/log/{name}/{name}", _SHORT, log_ends),
        AllowedCall(LAUNCHER, "GET", f"/code/{name}", _SHORT, lambda body, code: controller.code_path(code)),
        AllowedCall(LAUNCHER, "PUT", upload, MAX_BODY, begin_upload),
        AllowedCall(LAUNCHER, "PUT", f"{upload}/{number}/{number}/{digest}", MAX_BODY, put_part),
        AllowedCall(LAUNCHER, "POST", f"{upload}/{number}", _SHORT, finish_file),
        AllowedCall(LAUNCHER, "POST", upload, MAX_BODY, end_upload),
        admin("POST", "/view", lambda body: controller.view(ViewRequest(**json.loads(body))).to_dict()),
        admin("POST", "/copy", lambda body: controller.changes_since(_position(body)).to_dict()),
        admin("POST", "/artifact", lambda body: controller.read_artifact(**json.loads(body)), _SHORT * 4),
        admin("PUT", "/run", lambda body: controller.submit_run(RunSpec.from_dict(json.loads(body)))),
        admin("PUT", f"/code/{name}", lambda body, code: controller.put_code(code, body), MAX_CODE_BODY),
        admin("POST", "/restarts", lambda body: controller.queue_restarts(json.loads(body)["hostnames"])),
        admin("POST", "/new-launcher", lambda body: controller.announce_new_launcher(**json.loads(body))),
        admin("POST", "/stop", lambda body: _stop(controller, json.loads(body))),
        admin("GET", "/stopped", lambda body: _stopped(controller)),
    ]


def _route_of_changes(controller: Controller) -> AllowedCall:
    """The call that returns when orders have changed."""

    def wait(_: bytes, number: str) -> Any:
        return controller.wait_for_change(int(number))

    return AllowedCall(LAUNCHER, "GET", "/changes/([0-9]{1,18})", _SHORT, wait)


def _routes_of_moves(controller: Controller) -> List[AllowedCall]:
    """The calls for a run that moves from or to this controller."""
    run = "/restore/([A-Za-z0-9_-][A-Za-z0-9_.-]*)"

    def restored_file(_: bytes, run_id: str, path: str) -> Any:
        return controller.restored_file(run_id, unquote(path))

    def put_import(body: bytes, position: str) -> Any:
        return controller.put_import(int(position), body)

    def finish_import(body: bytes) -> Any:
        return controller.finish_import(ImportRequest.from_dict(json.loads(body)))

    return [
        AllowedCall(LAUNCHER, "GET", run, _SHORT, lambda body, run_id: controller.restorable(run_id)),
        AllowedCall(LAUNCHER, "GET", f"{run}/(.+)", _SHORT, restored_file),
        AllowedCall(ADMIN, "POST", "/moved", _SHORT, lambda body: controller.note_move(json.loads(body)["to"])),
        AllowedCall(ADMIN, "PUT", "/import/([0-9]{1,18})", MAX_IMPORT_BODY, put_import),
        AllowedCall(ADMIN, "POST", "/import", _SHORT, finish_import),
        AllowedCall(ADMIN, "GET", "/import", _SHORT, lambda body: controller.imported()),
    ]


def _stopped(controller: Controller) -> Dict[str, bool]:
    return {"stopped": controller.is_stopped(), **({"uploading": True} if controller.is_uploading() else {})}


def _stop(controller: Controller, data: Dict[str, Any]) -> None:
    hostnames, auxiliary = data.get("hostnames", []), data.get("auxiliary", True)
    controller.stop(hostnames, auxiliary, data.get("time_limit", 0.0), data.get("to_move", False))


def _sync(controller: Controller, data: Dict[str, Any]) -> Any:
    """The order for a report. A launcher from before there were generations does not understand them."""
    report = LauncherReport.from_dict(data)
    if "generation" in data:
        return controller.sync_json(report)
    order = controller.sync(report).to_dict()
    return {name: value for name, value in order.items() if name != "generation"}


def _position(body: bytes) -> CopyPosition:
    return CopyPosition.from_dict(json.loads(body))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    timeout = _STRANGER_SECONDS
    is_stranger = True

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
        role = server.role(self.headers.get(TOKEN_HEADER) or "")
        if role and self.is_stranger:
            self.is_stranger = False
            self.connection.settimeout(_IDLE_SECONDS)
            server.welcome(self.connection)
        route, names = server.find(self.command, self.path)
        if length is None:
            return self._refuse(Reply(400, b"the Content-Length is missing or wrong"), 0)
        if not role:
            return self._refuse(Reply(403, b"the cluster's token is missing or wrong"), length)
        if route is None:
            return self._refuse(Reply(404, f"unknown call: {self.command} {self.path}".encode()), length)
        if role != ADMIN and route.role == ADMIN:
            return self._refuse(Reply(403, b"the token of launchers does not allow this call"), length)
        if length > route.longest:
            text = f"the body has {length} bytes, and {route.longest} are allowed"
            return self._refuse(Reply(413, text.encode()), length)
        body = self.rfile.read(length)
        if len(body) < length:
            return self._refuse(Reply(400, b"the body is shorter than its Content-Length"), 0)
        return _act(route, body, names)

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


def _act(route: AllowedCall, body: bytes, names: Tuple[str, ...]) -> Reply:
    try:
        result = route.action(body, *names)
        if isinstance(result, Path):
            return Reply(200, file=result) if result.is_file() else Reply(404, f"there is no {result.name}".encode())
    except UploadRefused as error:
        return Reply(GONE, str(error).encode())
    except (workdir.RunRefused, UploadUnknown) as error:
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
            for route in [*_routes(controller), _route_of_changes(controller), *_routes_of_moves(controller)]
        ]
        self._count_lock = threading.Lock()
        self._open: Set[Any] = set()
        self._strangers: Set[Any] = set()
        bind_to: Any
        if address.startswith(UNIX):
            bind_to = address[len(UNIX) :]
            self.address_family = socket.AF_UNIX
            if Path(bind_to).exists():
                Path(bind_to).unlink()
        else:
            host, _, port = address.rpartition(":")
            bind_to = (host, int(port))
        super().__init__(bind_to, _Handler)

    def role(self, shown: str) -> str:
        """Who shows this token; empty where the token is wrong."""
        try:
            token = self._token.read_text().strip()
        except OSError:
            return ""
        if not token:  # the file is torn: an empty one would make everybody an administrator
            return ""
        credential = shown.encode("utf-8", "replace")
        for role, expected in ((ADMIN, token), (LAUNCHER, launcher_token(token))):
            if hmac.compare_digest(credential, expected.encode()):
                return role
        return ""

    def find(self, method: str, path: str) -> Tuple[Optional[AllowedCall], Tuple[str, ...]]:
        """The route of a call, and the names in its path."""
        for route, pattern in self._routes:
            match = pattern.fullmatch(path) if route.method == method else None
            if match:
                return route, match.groups()
        return None, ()

    def welcome(self, connection: Any) -> None:
        """A connection has shown a token."""
        with self._count_lock:
            self._strangers.discard(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in another thread; refuse it where there are too many."""
        with self._count_lock:
            is_refused = len(self._open) >= MAX_CONNECTIONS or len(self._strangers) >= MAX_STRANGERS
            if not is_refused:
                self._open.add(request)
                self._strangers.add(request)
        if is_refused:
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the machine has no thread left for it
            self._forget(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def _forget(self, request: Any) -> None:
        with self._count_lock:
            self._open.discard(request)
            self._strangers.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that closes its connection early is not an error."""


def run_controller(folder: Path, address: str, token: Path, train_mode: int = 0) -> int:
    """Run the controller of the record in `folder` until a signal stops it; the exit code.

    `token` is a file, which is read at each call. `train_mode` is the mode of a run's folder in `train_dir`, for tasks that run as
    other users than the controller; 0 leaves it to the umask.
    """
    die_with_parent(signal.SIGTERM, os.getppid())
    yield_to_programs()
    with workdir.locked(folder):
        controller = Controller(Record(folder), train_mode)
        server = Server(address, token, controller)
        stop_signals = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, {*stop_signals, signal.SIGALRM})
        controller.wake = wake_main_thread
        controller.tick()
        for thread in (server.serve_forever, controller.read_metrics):
            threading.Thread(target=thread, daemon=True).start()
        while not wait_for_signal(stop_signals, TICK_SECONDS):
            pause = controller.seconds_until_due()
            if pause and wait_for_signal(stop_signals, pause):
                break
            controller.tick()
        controller.tick()
        server.server_close()
        return INTERRUPTED_CODE
