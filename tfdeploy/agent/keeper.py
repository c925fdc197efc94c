"""Keeps one cluster's job: hears the launchers, decides, gives orders, writes the record, answers looks.

It holds no more than the record holds, so that it can be killed and started again at any moment.
"""

import hmac
import json
import os
import re
import signal
import socket
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple, cast

from . import copying, orders, training, workplace
from .child import die_with_parent, wait_for_signal
from .protocol import INTERRUPTED_CODE, TOKEN_HEADER, UNIX
from .record import Record
from .states import FINAL, Job

TICK = 0.25
"""Seconds between two looks at the clock."""

POLL_SOON, POLL_LATER = 0.2, 1.0
"""Seconds until a launcher asks again: while something is about to happen, and when its child has run for long."""

READ_SECONDS = 2.0
"""How often the keeper reads on in the logs when nobody looks."""


class Keeper:
    """The one place where a job's life is decided; its methods are the calls of `protocol`."""

    def __init__(self, record: Record, train_mode: int = 0) -> None:
        self._record = record
        self._train_mode = train_mode
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self._patterns: Dict[str, str] = {}
        self._job = record.current()
        if self._job is not None and not self._job.wired:
            self._job.waiting_since = time.time()

    def give(self, run: Dict[str, Any]) -> Dict[str, Any]:
        """This is the run from now on; a run that the record knows goes on where it was, or stays finished."""
        with self._lock:
            now = time.time()
            run = {**run, "train_dir": training.train_dir(self._record, run, self._train_mode)}
            if self._job is not None and self._job.run["id"] == run["id"]:
                events = orders.hand_over(self._job, run, now)
            else:
                known = self._record.load(run["id"])
                self._job = known or Job(run, now)
                events = ["this run is the present one again"] if known else ["run given"]
                if known is not None:
                    orders.come_back(known, now)
                events += orders.hand_over(self._job, run, now)
            self._settle(events, now)
            return {"decided": self._job.verdict is not None, "train_dir": run["train_dir"], "at": now}

    def sync(self, report: Dict[str, Any]) -> Dict[str, Any]:
        """A launcher's report in, its next order out."""
        with self._lock:
            now = time.time()
            if self._job is None:
                return {"do": "rest", "poll": POLL_SOON}
            self._settle(orders.absorb(self._job, report, now), now)
            order = orders.order(self._job, report["hostname"], now)
            if order["do"] != "run" or report["phase"] != "running":
                return {**order, "poll": POLL_SOON}
            del order["book"]  # who has a child needs none, and for many tasks it is long
            return {**order, "poll": min(max((now - report["started"]) / 10, POLL_SOON), POLL_LATER)}

    def roll(self, hostnames: List[str]) -> None:
        """Restart these tasks, one at a time in the order of job and index, so that new limits take effect."""
        with self._lock:
            if self._job is not None and self._job.verdict is None:
                orders.roll(self._job, hostnames, time.time())
                self.tick()

    def again(self, hostname: str, word: str) -> None:
        """The user's word: the hands are about to give this task another launcher, which pauses for no failure."""
        with self._lock:
            if self._job is not None:
                self._settle(orders.leave(self._job, hostname, word), time.time())

    def stop(self, hostnames: List[str]) -> None:
        """The user's word: these tasks are taken away; or, without one, the whole job is stopped."""
        with self._lock:
            now = time.time()
            if self._job is None:
                return
            if hostnames:
                self._settle(orders.take_away(self._job, hostnames), now)
            elif not self._job.dismissed:
                self._settle(orders.dismiss(self._job, now), now)

    def tick(self) -> None:
        """Let time have its effect."""
        with self._lock:
            self._record.touch()
            self._settle([], time.time())

    def look(self, ask: Dict[str, Any]) -> Dict[str, Any]:
        """What has been seen: see `record.Record.view`."""
        with self._looking:
            self._patterns = ask["metrics"] or self._patterns
            return self._record.view(ask, self._snapshot())

    def copy(self, ask: Dict[str, Any]) -> Dict[str, Any]:
        """What the record has beyond a copy of it: see `copying.beyond`."""
        with self._lock:
            job = self._snapshot()
        return {**copying.beyond(self._record, job, ask), "at": time.time()}

    def read_on(self) -> None:
        """For ever: read what the tasks print for what the last look asked for, so that a look after hours is quick."""
        while True:
            time.sleep(READ_SECONDS)
            with self._looking:
                job = self._snapshot()
                if job is not None:
                    self._record.metrics(job, self._patterns)

    def _snapshot(self) -> Optional[Job]:
        with self._lock:
            return Job.from_dict(self._job.to_dict()) if self._job else None

    def stopped(self) -> bool:
        """Whether no task of the present run has anything left to do."""
        job = self._job
        return job is None or (job.verdict is not None and all(task.state in FINAL for task in job.tasks.values()))

    def log(self, run: str, hostname: str, stream: str, position: int, data: bytes) -> int:
        """Keep bytes of a log; return how far it now goes."""
        return self._record.log(run, hostname).streams[stream].put(position, data)

    def ends(self, run: str, hostname: str) -> Dict[str, int]:
        """How far a task's log goes."""
        return self._record.log(run, hostname).ends()

    def code(self, name: str) -> Path:
        """Where the archive of this content stands."""
        return self._record.folder / "code" / f"{name}.zip"

    def keep_code(self, name: str, data: bytes) -> None:
        """Keep an archive under the name of its content."""
        path = self.code(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{threading.get_ident()}")
        draft.write_bytes(data)
        draft.replace(path)

    def _settle(self, events: List[str], now: float) -> None:
        if self._job is None:
            return
        for text in events + orders.advance(self._job, now):
            self._record.event(self._job.run["id"], text, now)
        self._record.save(self._job)


Answer = Tuple[int, bytes]
Route = Tuple[str, str, Callable[..., Any]]


def _routes(keeper: Keeper) -> List[Route]:
    name = r"([A-Za-z0-9_.-]+)"
    return [
        ("POST", "/sync", lambda body: keeper.sync(json.loads(body))),
        ("POST", "/look", lambda body: keeper.look(json.loads(body))),
        ("POST", "/copy", lambda body: keeper.copy(json.loads(body))),
        ("PUT", f"/log/{name}/{name}/(stdout|stderr|index)/([0-9]+)", lambda body, *at: _put_log(keeper, body, *at)),
        ("GET", f"/log/{name}/{name}", lambda body, run, hostname: keeper.ends(run, hostname)),
        ("PUT", "/run", lambda body: keeper.give(json.loads(body))),
        ("PUT", f"/code/{name}", lambda body, code: keeper.keep_code(code, body)),
        ("GET", f"/code/{name}", lambda body, code: keeper.code(code).read_bytes()),
        ("POST", "/roll", lambda body: keeper.roll(json.loads(body)["hostnames"])),
        ("POST", "/again", lambda body: keeper.again(**json.loads(body))),
        ("POST", "/stop", lambda body: keeper.stop(json.loads(body).get("hostnames", []))),
        ("GET", "/stopped", lambda body: {"stopped": keeper.stopped()}),
    ]


def _put_log(keeper: Keeper, body: bytes, run: str, hostname: str, stream: str, position: str) -> Dict[str, int]:
    return {"end": keeper.log(run, hostname, stream, int(position), body)}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    timeout = 120

    def _answer(self) -> None:
        server = cast("_Server", self.server)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, content = self._content(server, body)
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _content(self, server: "_Server", body: bytes) -> Answer:
        if not hmac.compare_digest(self.headers.get(TOKEN_HEADER) or "", server.token.read_text().strip()):
            return 403, b"the cluster's token is missing or wrong"
        for method, path, action in server.routes:
            match = re.fullmatch(path, self.path) if method == self.command else None
            if match:
                try:
                    result = action(body, *match.groups())
                except FileNotFoundError as error:
                    return 404, str(error).encode()
                except training.Refused as error:
                    return 409, str(error).encode()
                return 200, result if isinstance(result, bytes) else json.dumps(result or {}).encode()
        return 404, f"no such call: {self.command} {self.path}".encode()

    do_GET = do_PUT = do_POST = _answer

    def address_string(self) -> str:
        return "launcher"

    def log_message(self, format: str, *args: Any) -> None:
        """Calls are not logged: there are several a second for each task."""


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1024

    def __init__(self, address: str, token: Path, keeper: Keeper) -> None:
        self.token = token
        self.routes = _routes(keeper)
        place: Any = address[len(UNIX) :]
        if address.startswith(UNIX):
            self.address_family = socket.AF_UNIX
            if Path(place).exists():
                Path(place).unlink()
        else:
            host, _, port = address.rpartition(":")
            place = (host, int(port))
        super().__init__(place, _Handler)


def keep(folder: Path, address: str, token: Path, train_mode: int = 0) -> int:
    """Keep the cluster whose record is in `folder` until told to stop; the exit code.

    `token` is a file, read at each call. `train_mode` is the mode of a run's folder in `train_dir`, where the tasks are
    other users than the keeper; 0 leaves it to the umask.
    """
    die_with_parent(signal.SIGTERM, os.getppid())
    with workplace.held(folder):
        keeper = Keeper(Record(folder), train_mode)
        server = _Server(address, token, keeper)
        ends = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, {*ends, signal.SIGALRM})
        keeper.tick()
        for thread in (server.serve_forever, keeper.read_on):
            threading.Thread(target=thread, daemon=True).start()
        while not wait_for_signal(ends, TICK):
            keeper.tick()
        server.server_close()
        return INTERRUPTED_CODE
