"""A real launcher, and a controller that a test plays: it gives the orders, and keeps the reports."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.http_server import serving
from tests.waiting import until
from tfdeploy.agent.model.run_spec import RunJob, RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import LauncherReport
from tfdeploy.agent.model.settings import TaskSettings
from tfdeploy.agent.model.sync import END, PREPARE, RUN, Order
from tfdeploy.agent.model.task_command import TaskAddress
from tfdeploy.agent.record.output_lines import PIPES, printed
from tfdeploy.backends.zipapp import compiled_application

HOSTNAME = "worker-0"
GENERATION = 7
RUN_ID = "run"
POLL = 0.05


class PlayedController:
    """What a launcher speaks with. By default it has the launcher prepare the run and start attempt 1, and lets it end after that."""

    def __init__(self, spec: RunSpec, code: bytes | None) -> None:
        self.spec = spec
        self.code = code
        self.code_calls = 0
        self.reports: list[LauncherReport] = []
        self.pieces: dict[str, dict[int, bytearray]] = {RUN_ID: {}, "other": {}}
        self.logs_at_exit: bytes | None = None
        self.is_silent = False
        self.is_another_program = False
        self.calls = 0
        self.decide: Callable[[LauncherReport], Order] = self.run_once

    @property
    def logs(self) -> dict[str, bytes]:
        """What the program has printed, by stream."""
        return self.printed(RUN_ID)

    def printed(self, run_id: str) -> dict[str, bytes]:
        """The same of any run."""
        output = b"".join(bytes(piece) for _, piece in sorted(self.pieces[run_id].items()))
        return {name: printed(output, pipe) for pipe, name in PIPES.items()}

    def run_once(self, report: LauncherReport) -> Order:
        """Prepare, run attempt 1, end."""
        if report.exit and (report.run_id, report.attempt) == (self.spec.id, 1):
            return Order(END)
        return self.run_attempt(report, 1)

    def run_attempt(self, report: LauncherReport, attempt: int) -> Order:
        """Prepare, then run this attempt."""
        if not report.ready or report.run_id != self.spec.id:
            return Order(PREPARE, 5.0, self.spec.id, attempt, self.spec)
        book = [TaskAddress(HOSTNAME, "worker", 0, f"127.0.0.1:{report.port}")]
        return Order(RUN, 5.0, self.spec.id, attempt, address_book=book)

    def last(self) -> LauncherReport | None:
        """The last report."""
        return self.reports[-1] if self.reports else None

    def respond(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """The response to one call."""
        self.calls += 1
        if self.is_another_program:
            return 200, b"<html>"
        if path == "/sync":
            report = LauncherReport.from_dict(json.loads(body))
            self.reports.append(report)
            if report.exit and self.logs_at_exit is None:
                self.logs_at_exit = self.logs["stdout"]
            order = self.decide(report).to_dict()
            return 200, json.dumps({**order, "poll": POLL, "generation": GENERATION}).encode()
        if path.startswith("/changes/"):
            return 404, b"unknown call"  # as a controller of an earlier version
        if path.startswith("/code/"):
            self.code_calls += 1
            return (404, b"there is no such archive") if self.code is None else (200, self.code)
        if path.startswith("/restore/"):
            return 200, json.dumps({"folder": "", "files": []}).encode()
        _, _, run_id, _, *rest = path.split("/")
        pieces = self.pieces[run_id]
        if method == "GET":
            return 200, json.dumps({"pieces": {first: len(piece) for first, piece in pieces.items()}}).encode()
        first, at = int(rest[1]), int(rest[2])
        piece = pieces.setdefault(first, bytearray())
        known = piece[at - first :][: len(body)]  # the last bytes come again
        assert at <= first + len(piece)
        assert body.startswith(known)
        piece += body[len(known) :]
        return 200, json.dumps({"end": first + len(piece)}).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    controller: PlayedController

    def _respond(self) -> None:
        controller = self.controller
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if controller.is_silent:
            self.close_connection = True
            return
        status, content = controller.respond(self.command, self.path, body)
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = _respond  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Nothing."""


class Launching:
    """One task's folder, its controller, and the launchers that a test starts for it."""

    def __init__(self, folder: Path, controller: PlayedController, address: str, settings: dict[str, Any]) -> None:
        self.folder = folder / "task"
        self.controller = controller
        self._processes: list[subprocess.Popen[bytes]] = []
        self._agent = folder / "agent.pyz"
        self._agent.write_bytes(compiled_application())
        (folder / "token").write_text("token")
        self.folder.mkdir()
        values = TaskSettings(
            HOSTNAME,
            "worker",
            0,
            address,
            str(folder / "token"),
            str(self.folder),
            str(folder / "secrets"),
            "127.0.0.1",
        )
        (self.folder / "task.json").write_text(json.dumps({**values.to_dict(), **settings}))

    def start(self, file_bytes: int = resource.RLIM_INFINITY) -> subprocess.Popen[bytes]:
        """Start a launcher; none of its files may be larger than `file_bytes`."""
        command = [sys.executable, "-I", "-S", str(self._agent), "launch", str(self.folder / "task.json")]
        limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({file_bytes}, -1))"
        code = f"import os, resource, sys; {limit}; os.execv(sys.argv[1], sys.argv[1:])"
        self._processes.append(subprocess.Popen([sys.executable, "-c", code, *command], start_new_session=True))
        return self._processes[-1]

    def until_report(self, condition: Callable[[LauncherReport], object], what: str) -> LauncherReport:
        """Wait for a report of which `condition` is true."""
        return until(
            lambda: next((report for report in reversed(self.controller.reports) if condition(report)), None),
            what,
            seen=self.controller.last,
        )

    def close(self) -> None:
        """End what is left."""
        for process in self._processes:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def launching(folder: Path, script: str, code: bytes | None = b"", **settings: Any) -> Iterator[Launching]:
    """A task that runs `script` with Python. `code` is the code archive, None for one that is missing."""
    has_code = code is None or code
    spec = RunSpec(
        RUN_ID,
        [TaskSpec(HOSTNAME, "worker", 0)],
        {"worker": RunJob()},
        [sys.executable, "-c", script],
        code="code" if has_code else "",
        train_dir=str(folder / "train"),
    )
    controller = PlayedController(spec, code)
    with serving(type("Handler", (_Handler,), {"controller": controller})) as port:
        made = Launching(folder, controller, f"127.0.0.1:{port}", settings)
        try:
            yield made
        finally:
            made.close()
