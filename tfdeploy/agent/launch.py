"""Keeps one task: registers with the keeper, obeys its orders, reports its child's life, sends on all that it prints.

One loop, woken by the child's end, a signal, or the time to ask again. A child that runs goes on when the keeper is away.
"""

import json
import os
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import Any, Dict, Optional

from . import container, training, wiring, workplace
from .child import NOT_FOUND, Child, die_with_parent, kill_leftovers, reap_orphans, wait_for_signal
from .lines import STDERR, entry
from .protocol import INTERRUPTED_CODE, CallError, Client
from .spool import Pump, Shipper, close_spool, open_spool

_AWAY_SECONDS = 0.5
_PIPE_SECONDS = 2.0
_SHIP_SECONDS = 10.0
_WAKING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}


class Launcher:
    """One task's launcher; `settings` is what the engine knows of the task (see `backends.base`)."""

    def __init__(self, settings: Dict[str, Any]) -> None:
        self._settings = settings
        self._client = Client(settings["keeper"], self._token())
        self._log_client = Client(settings["keeper"], self._token())
        self._folder = Path(settings["folder"])
        self._note = self._folder / "child.json"
        self._port = workplace.Port(settings["host"])
        self._instance = uuid.uuid4().hex
        self._created = time.time()
        self._spec: Dict[str, Any] = {}
        self._attempt = 0
        self._started = 0.0
        self._child: Optional[Child] = None
        self._pump: Optional[Pump] = None
        self._spool: Optional[Shipper] = None
        self._exit: Optional[Dict[str, Any]] = None
        self._cause = ""
        self._kill_at = 0.0
        self._grace = 0.0
        self._told_to_stop = False

    def run(self) -> int:
        """Until there is nothing more to do; the exit code."""
        kill_leftovers(self._note)
        while True:
            self._told_to_stop = self._told_to_stop or bool(container.notice())
            self._collect()
            told = self._report()
            order = self._ask(told)
            code = self._obey(order)
            if code is not None:
                close_spool(self._spool, _SHIP_SECONDS)
                return code
            if self._report() == told:
                self._sleep(float(order["poll"]) if order else _AWAY_SECONDS)

    def _sleep(self, seconds: float) -> None:
        if self._kill_at:
            seconds = min(seconds, max(0.01, self._kill_at - time.monotonic()))
        if wait_for_signal(_WAKING, seconds) not in (0, signal.SIGCHLD):
            self._told_to_stop = True

    def _report(self) -> Dict[str, Any]:
        phase = "exited" if self._exit else "running" if self._child else "idle"
        return {
            "hostname": self._settings["hostname"],
            "instance": self._instance,
            "container": self._settings["container"] or str(os.getpid()),
            "machine": self._settings["machine"],
            "host": self._settings["host"],
            "port": self._port.number,
            "created": self._created,
            "run": self._spec.get("id", ""),
            "ready": bool(self._spec) and bool(self._port.number),
            "attempt": self._attempt,
            "phase": phase,
            "started": self._started,
            "exit": self._exit,
        }

    def _ask(self, report: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """The next order; None when the keeper is away. An end is told when all that was printed has arrived."""
        if self._exit and self._spool and not self._spool.ship() and time.time() < self._exit["at"] + _SHIP_SECONDS:
            return None
        try:
            return self._client.json("POST", "/sync", report)
        except OSError:
            return None
        except CallError:
            self._client.token = self._log_client.token = self._token()
            return None

    def _token(self) -> str:
        return Path(self._settings["token"]).read_text().strip()

    def _collect(self) -> None:
        """Take note of the child's end."""
        reap_orphans(self._child.process.pid if self._child else 0)
        if self._child is None:
            return
        if self._kill_at and time.monotonic() >= self._kill_at:
            self._child.signal(signal.SIGKILL)
        end = self._child.end()
        if end is None or self._pump is None:
            return
        self._pump.finish(_PIPE_SECONDS)
        self._exit = {**end, "cause": self._cause, "notice": container.notice(), "at": time.time()}
        self._child = self._pump = None
        self._cause, self._kill_at = "", 0.0

    def _stop(self, cause: str) -> None:
        if self._child is not None and not self._cause:
            self._cause, self._kill_at = cause, time.monotonic() + self._grace
            self._child.signal(signal.SIGTERM)

    def _obey(self, order: Optional[Dict[str, Any]]) -> Optional[int]:
        """Do what the order says; an exit code when this was the end."""
        if self._told_to_stop:
            return self._interrupt()
        if order is None or order["do"] == "rest":
            return None
        self._grace = float(order["grace"])
        if order["do"] in ("stop", "end"):
            self._stop("stopped")
            return 0 if order["do"] == "end" and self._child is None else None
        same = (order["run"], order["attempt"]) == (self._spec.get("id"), self._attempt)
        if self._child is not None:
            if not same:
                self._stop("replaced")
        elif order["do"] == "prepare":
            self._prepare(order)
        elif order["do"] == "run" and not same:
            self._start(order)
        return None

    def _interrupt(self) -> Optional[int]:
        self._stop("interrupted")
        if self._child is not None:
            return None
        self._exit = self._exit or _end(INTERRUPTED_CODE, "interrupted", container.notice())
        self._ask(self._report())
        return INTERRUPTED_CODE

    def _prepare(self, order: Dict[str, Any]) -> None:
        spec = order["spec"]
        work = self._folder / "work"
        try:
            if self._spool is None or self._spec.get("id") != spec["id"]:
                close_spool(self._spool, _SHIP_SECONDS)
                self._spool = open_spool(
                    self._log_client, self._folder / "spool", spec["id"], self._settings["hostname"]
                )
            if not (work / spec["id"]).exists():
                archive = self._client.call("GET", f"/code/{spec['code']}") if spec["code"] else b""
                workplace.unpack(archive, work / spec["id"])
        except (OSError, CallError):
            return
        workplace.tidy(work, spec["id"])
        workplace.tidy(self._folder / "spool", spec["id"])
        self._spec, self._attempt, self._exit = spec, 0, None
        try:
            self._port.choose(self._settings["port"] or order["port"], fixed=bool(self._settings["port"]))
        except workplace.PortTaken as error:
            self._refuse(order["attempt"], str(error), 1)
        why = training.refusal(spec["train_dir"])
        if why:
            self._refuse(order["attempt"], why, 1)

    def _refuse(self, attempt: int, why: str, code: int) -> None:
        """The child cannot be started: say so where its last words would stand."""
        if self._spool is not None:
            streams = self._spool.log.streams
            text = f"tfdeploy: {why}\n".encode()
            place = streams["stderr"].end
            streams["stderr"].put(place, text)
            streams["index"].put(streams["index"].end, entry(time.time(), STDERR, attempt, place, len(text)))
        self._attempt, self._exit = attempt, _end(code, "")

    def _start(self, order: Dict[str, Any]) -> None:
        if self._spool is None:
            return
        book = [wiring.Entry(*fields) for fields in order["book"]]
        task = next(item for item in book if item.hostname == self._settings["hostname"])
        self._settings = {**self._settings, **_latest(self._folder / "task.json")}
        known = {**wiring.values(book, task), **wiring.folders(self._spec), "agent": str(Path(sys.argv[0]).resolve())}
        command = wiring.command_of(self._spec, task.job, known)
        env = workplace.environment(os.environ, book, task, self._spec, self._settings)
        self._attempt, self._exit, self._started = order["attempt"], None, time.time()
        folder = self._folder / "work" / self._spec["id"]
        try:
            self._child = Child(command, env, folder, self._note, self._settings["memory"])
        except (OSError, ValueError) as error:
            self._refuse(order["attempt"], f"cannot start {command[0]!r}: {error}", NOT_FOUND)
            return
        stdout, stderr = self._child.process.stdout, self._child.process.stderr
        if stdout is not None and stderr is not None:
            self._pump = Pump(self._spool.log, stdout, stderr, self._attempt)


def _end(code: int, cause: str, notice: str = "") -> Dict[str, Any]:
    return {"code": code, "signal": "", "oom": False, "cause": cause, "notice": notice, "at": time.time()}


def _latest(path: Path) -> Dict[str, Any]:
    """The limits may have been changed since the launcher came: they are read again before each start."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {key: data[key] for key in ("memory", "gpus")}


def launch(settings: str) -> int:
    """Keep the task that the settings describe: a file, or, in a container, their JSON text itself; the exit code."""
    die_with_parent(signal.SIGTERM, os.getppid())
    in_container = settings.startswith("{")
    known = (
        container.completed(json.loads(settings), os.environ)
        if in_container
        else json.loads(Path(settings).read_text())
    )
    if in_container:
        os.environ["HOME"] = container.home(os.environ)
    if container.notice():
        return INTERRUPTED_CODE  # the keeper has heard it from the launcher before this one
    with workplace.held(Path(known["folder"])):
        signal.pthread_sigmask(signal.SIG_BLOCK, {*_WAKING, signal.SIGALRM})
        return Launcher(known).run()
