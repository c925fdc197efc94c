"""The launcher of one task: registers with the controller, follows its orders, runs the program, ships its output.

One loop, which wakes up at the program's end, at a signal, or when the next sync is due. A running program is left alone while the
controller does not respond, for however long.
"""

import errno
import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Optional

from ..model import sync, task_command
from ..model.run_spec import RunSpec, TaskSpec
from ..model.run_state import LauncherReport
from ..model.settings import TaskSettings
from ..model.sync import Order
from ..model.task_command import TaskAddress
from ..record.output_lines import STDERR, Part, encode
from ..system.locks import locked
from ..system.parent_death import NOT_FOUND, adopt_orphans, die_with_parent, yield_to_programs
from ..system.polling import Backoff, boot_seconds, wait_until
from ..system.ports import Port, PortTaken, is_listening
from ..system.signals import wait_for_signal, wake_main_thread
from ..wire.change_watch import CALL_SECONDS, ChangeWatch
from ..wire.log_shipper import Shipper
from ..wire.rpc import INTERRUPTED_CODE, CallError, CallObsolete, Client
from . import docker_env, log_pump, workdir
from .dump_sender import DumpSender
from .last_order import LastOrder
from .process import kill_leftovers
from .program import Program
from .uploads import Uploads

_RETRY_SECONDS, _LONGEST_RETRY = 0.05, 4.0
"""Seconds until the next sync after one that got no order: twice as long each time, since a controller that starts with its launchers
listens a moment later than they sync. `controller_absence.HEAR_SECONDS` is longer."""

_RESTART_SECONDS = 0.5
"""The shortest pause before a program is started that is due while the controller is away."""

_SHIP_SECONDS = 10.0

_PASSING = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
"""Errors that are not the program's: a full disk, a machine that is out of processes, memory or files."""

_WAKING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}


class Launcher:
    """One task's launcher."""

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._folder = Path(settings.folder)
        self._client = Client(settings.controller, self._read_token())
        self._log_client = Client(settings.controller, self._read_token(), shows_restarts=True)
        self._changes = ChangeWatch(
            lambda: Client(settings.controller, self._read_token(), CALL_SECONDS), wake_main_thread
        )
        self._identity = LauncherReport(
            settings.hostname,
            os.urandom(16).hex(),
            settings.container or str(os.getpid()),
            settings.machine,
            settings.host,
            created=time.time(),
            can_upload=True,
        )
        self._port = Port(settings.host)
        self._has_listened = False
        self._program = Program(self._folder)
        self._last_order = LastOrder()
        self._dump = DumpSender(lambda: Client(settings.controller, self._read_token()), settings)
        self._retry = Backoff(_RETRY_SECONDS, _LONGEST_RETRY)
        self._backoff = Backoff()
        self._problem = ""
        self._lost_bytes = 0
        self._leftover_runs = workdir.folder_names(self._folder / "spool")
        self._ship_until = 0.0
        self._spec: Optional[RunSpec] = None
        self._spool: Optional[Shipper] = None
        self._grace = 0.0
        self._is_interrupted = self._is_signalled = False
        self._uploads = Uploads(
            lambda seconds: Client(settings.controller, self._read_token(), seconds), settings.hostname
        )

    def run(self) -> int:
        """Run until the task is finished; the exit code."""
        kill_leftovers(self._folder / "child.json")
        while True:
            self._is_interrupted = self._is_interrupted or bool(docker_env.notice())
            self._program.collect()
            report = self._report()
            order = self._sync(report)
            code = self._follow(order or self._order_of_absent())
            if code is not None:
                wait_until(self._ship_leftovers, _SHIP_SECONDS, _RETRY_SECONDS)
                self._close_spool()
                return code
            if self._report() == report:
                self._sleep(order.poll if order else self._seconds_until_retry())

    def _order_of_absent(self) -> Optional[Order]:
        """The order to start the program while the controller is away."""
        is_prepared = self._spec is not None and not self._program.is_running
        return self._last_order.follow(self._program) if is_prepared else None

    def _seconds_until_retry(self) -> float:
        due = self._last_order.seconds_until_restart(self._program)
        pause = max(_RETRY_SECONDS, self._retry.seconds)
        return pause if due is None else min(pause, max(due, _RESTART_SECONDS))

    def _sleep(self, seconds: float) -> None:
        if wait_for_signal(_WAKING, self._program.seconds_until_kill(seconds)) not in (0, signal.SIGCHLD):
            self._is_interrupted = self._is_signalled = True

    def _report(self) -> LauncherReport:
        program = self._program
        lost = self._lost_bytes + (self._spool.log.lost_bytes if self._spool else 0)
        return replace(
            self._identity,
            port=self._port.number or program.port,
            run_id=self._spec.id if self._spec else program.run_id,
            ready=self._spec is not None and bool(self._port.number),
            attempt=program.attempt,
            phase=program.phase,
            started=program.started,
            exit=program.exit,
            problem=self._problem or self._uploads.problem,
            dropped_bytes=program.dropped + lost,
            is_listening=self._is_listening(),
        )

    def _is_listening(self) -> bool:
        """Whether the program of a service listens, or has listened, at the task's port."""
        if not self._program.is_running or self._spec is None:
            return False
        if not self._has_listened and self._spec.is_service(TaskSpec.of(self._settings.hostname).job):
            self._has_listened = is_listening(self._settings.host, self._port.number)
        return self._has_listened

    def _sync(self, report: LauncherReport) -> Optional[Order]:
        """The next order; None without a response. The program's end is reported after all of its output has been shipped."""
        report = self._program.complete(report)
        if report.exit and not self._has_shipped():
            return None
        try:
            order = Order.from_dict(self._client.json("POST", "/sync", report.to_dict()))
        except (OSError, ValueError, KeyError, TypeError):  # no response, or none of a controller
            self._retry.fail()
            self._last_order.note_silence()
            return None
        except CallError:
            self._retry.fail()
            self._last_order.note_response()
            with suppress(OSError):
                self._client.token = self._log_client.token = self._read_token()
            return None
        self._retry.reset()
        self._last_order.note_response(order)
        if order.action == sync.RUN and order.attempt != self._program.attempt:
            self._program.forget_restarts()
        self._changes.note_contact()
        self._uploads.follow(order.upload if self._program.is_running == (order.action == sync.RUN) else None)
        self._dump.follow(order.dump, self._program.group)
        self._identity = replace(self._identity, generation=order.generation or self._identity.generation)
        return order

    def _has_shipped(self) -> bool:
        """Whether the controller has all output, or there was enough time for it."""
        if self._ship_leftovers() and (self._spool is None or self._spool.ship()):
            self._ship_until = 0.0
            return True
        self._ship_until = self._ship_until or boot_seconds() + _SHIP_SECONDS
        return boot_seconds() >= self._ship_until

    def _ship_leftovers(self) -> bool:
        """Send what is left in the spools of earlier runs and launchers, and return whether all of it has arrived."""
        for run_id in list(self._leftover_runs):
            try:
                with Client(self._settings.controller, self._client.token) as client:
                    spool = self._open_spool(client, run_id)
                    has_arrived = spool.ship()
                    spool.close()
            except CallObsolete:  # the run was deleted
                self._leftover_runs.remove(run_id)
                continue
            except (OSError, CallError, ValueError, KeyError):
                return False
            self._lost_bytes += spool.log.lost_bytes
            if not has_arrived:
                return False
            self._leftover_runs.remove(run_id)
        return True

    def _read_token(self) -> str:
        return Path(self._settings.token).read_text().strip()

    def _follow(self, order: Optional[Order]) -> Optional[int]:
        """Execute the order, and return an exit code when the launcher is done."""
        program = self._program
        if self._is_interrupted:
            return self._interrupt()
        if order is None or order.action == sync.NOTHING:
            return None
        self._grace = order.grace
        if order.action in (sync.STOP, sync.END):
            return self._end(order)
        run_id = self._spec.id if self._spec else ""
        is_current = (order.run_id, order.attempt) == (run_id, program.attempt)
        if program.is_running:
            if not is_current:
                program.stop(sync.REPLACED, self._grace)
        elif self._backoff.seconds:
            return None
        elif order.action == sync.PREPARE and order.spec is not None:
            self._prepare(order, order.spec)
        elif order.action == sync.RUN and not is_current and self._spec is not None:
            self._start(order, self._spec)
        else:
            self._problem = ""
        return None

    def _end(self, order: Order) -> Optional[int]:
        """Stop the program; for `end` exit, unless something is uploaded before that."""
        self._program.stop(sync.STOPPED, self._grace)
        if order.action == sync.STOP or self._program.is_running or order.upload is not None:
            return None
        self._program.forget()
        return 0

    def _interrupt(self) -> Optional[int]:
        program = self._program
        program.stop(sync.INTERRUPTED, self._grace)
        if program.is_running:
            return None
        if program.exit is None:
            run_id = self._spec.id if self._spec else ""
            program.fail(run_id, program.attempt, INTERRUPTED_CODE, sync.INTERRUPTED, docker_env.notice())
        was_stopped = program.exit is not None and program.exit.cause == sync.INTERRUPTED
        order = self._sync(self._report())
        if order is not None and order.upload is not None and not self._is_signalled:
            return None
        if order is not None and was_stopped:
            program.forget()  # an end by itself is reported again by the next launcher: it may not be in the record yet
        return INTERRUPTED_CODE

    def _prepare(self, order: Order, spec: RunSpec) -> None:
        """Fetch the run's code and take a port; when something prevents it, that is reported, and it is tried again later."""
        try:
            self._fetch(spec)
            problem = workdir.train_dir_problem(spec.train_dir)
            if not problem:
                from .artifact_restore import restore  # not needed by a launcher that prepares nothing

                restore(self._settings.controller, self._client.token, spec.id, spec.train_dir)
        except (OSError, CallError, ValueError) as error:
            self._try_later("cannot prepare the run", error)
            return
        self._backoff.reset()
        self._problem = ""
        self._program.forget()
        self._spec = spec
        try:
            self._port.choose(self._settings.port or order.port, fixed=bool(self._settings.port))
        except PortTaken as error:
            problem = str(error)
        if problem:
            self._fail(order.attempt, problem, 1)

    def _fetch(self, spec: RunSpec) -> None:
        """Open the run's spool, and unpack its code."""
        work, spools = self._folder / "work", self._folder / "spool"
        if self._spool is None or self._spec is None or self._spec.id != spec.id:
            self._close_spool()
            self._ship_leftovers()
            self._spool = self._open_spool(self._log_client, spec.id)
            self._leftover_runs = [run_id for run_id in self._leftover_runs if run_id != spec.id]
        if not (work / spec.id).exists():
            archive = self._folder / "code.zip"
            try:
                if spec.code:
                    self._log_client.download(f"/code/{spec.code}", archive)
                workdir.unpack(archive if spec.code else None, work / spec.id)
            finally:
                with suppress(OSError):
                    archive.unlink()
        workdir.remove_others(work, [spec.id])
        workdir.remove_others(spools, [spec.id, *self._leftover_runs])

    def _open_spool(self, client: Client, run_id: str) -> Shipper:
        folder, hostname = self._folder / "spool", self._settings.hostname
        return Shipper(client, folder, run_id, hostname, self._identity.instance)

    def _close_spool(self) -> None:
        """Stop sending the output of a run. What could not be sent in time is sent later, with that of earlier launchers."""
        if self._spool is not None:
            if not wait_until(self._spool.ship, _SHIP_SECONDS, _RETRY_SECONDS):
                self._leftover_runs.append(self._spool.log.folder.name)
            self._spool.close()
            self._lost_bytes += self._spool.log.lost_bytes
            self._spool = None

    def _try_later(self, action: str, error: Exception) -> None:
        """Try again after a pause, and report why, unless the network fails for a moment."""
        self._problem = self._backoff.fail_by(action, error) or self._problem

    def _fail(self, attempt: int, problem: str, code: int) -> None:
        """The program cannot be started: write why to its stderr, and report an exit code."""
        if self._spool is not None and self._spec is not None:
            text = f"tfdeploy: {problem}".encode()
            self._spool.log.write(encode(Part(log_pump.now(), STDERR, attempt, text, True)))
            self._program.fail(self._spec.id, attempt, code)

    def _start(self, order: Order, spec: RunSpec) -> None:
        if self._spool is None:
            return
        self._has_listened = False
        task = next(task for task in order.address_book if task.hostname == self._settings.hostname)
        self._settings = _with_latest_limits(self._settings, self._folder / "task.json")
        name = ""
        try:
            command = _command(order, task, spec, self._settings)
            name = f" {command.arguments[0]!r}"
            self._program.start(command, self._settings.limits, self._spool, spec.id, order.attempt, self._port.number)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in _PASSING:
                self._try_later(f"cannot start{name}", error)
            else:
                self._fail(order.attempt, f"cannot start{name}: {error}", NOT_FOUND)
            return
        self._backoff.reset()
        self._problem = ""


def _command(order: Order, task: TaskAddress, spec: RunSpec, settings: TaskSettings) -> workdir.Command:
    """The program's command line, environment and working directory."""
    values = {
        **task_command.placeholders(order.address_book, task),
        **task_command.folders(spec),
        "agent": str(Path(sys.argv[0]).resolve()),
    }
    return workdir.Command(
        task_command.task_command(spec, task.job, values),
        workdir.environment(
            workdir.inherited(settings.environments, spec.id), order.address_book, task, spec, settings
        ),
        Path(settings.folder) / "work" / spec.id,
    )


def _with_latest_limits(settings: TaskSettings, path: Path) -> TaskSettings:
    """The limits may have changed since the launcher started; they are read again before each start of the program."""
    try:
        latest = TaskSettings.from_dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return settings
    return replace(settings, limits=latest.limits, gpus=latest.gpus)


def launch(text: str) -> int:
    """Run the launcher of a task; the exit code. `text` is the path of the settings, or, in a container, the settings themselves."""
    die_with_parent(signal.SIGTERM, os.getppid())
    adopt_orphans()
    yield_to_programs()
    if text.startswith("{"):
        settings = docker_env.complete(TaskSettings.from_dict(json.loads(text)), os.environ)
        os.environ["HOME"] = docker_env.home(os.environ)
    else:
        settings = TaskSettings.from_dict(json.loads(Path(text).read_text()))
    if docker_env.notice():
        return INTERRUPTED_CODE  # the launcher before this one has reported it
    with locked(Path(settings.folder)):
        signal.pthread_sigmask(signal.SIG_BLOCK, {*_WAKING, signal.SIGALRM})
        return Launcher(settings).run()
