"""Tasks as processes of this machine, supervised by one supervisord for each cluster."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agent.model.run_spec import RunSpec
from ...agent.model.run_state import RunState
from ...agent.record.record import Record, RecordView, ViewRequest
from ...agent.system.files import write_whole
from ...agent.wire.rpc import UNIX, CallError, task_token
from ...errors import BackendError, Unreachable
from ...paths import make_private, set_aside
from .. import controller_calls
from ..base import (
    CONTROLLER,
    ClusterRef,
    EngineTask,
    ObservedState,
    Retain,
    RunOutputs,
    RunProps,
    TaskOutputs,
    TaskProps,
    limits_of,
)
from ..controller_calls import ControllerApi
from ..requirements_status import installing, noted
from .paths import MACHINE, Places, machine_id, other_machine, user_umask, write_private
from .supervisor import MARK, Silent, Supervisor, environment

if TYPE_CHECKING:  # most callers move no run
    from ..move_checks import StoppedRun

_CALL_SECONDS = 30.0
_OBSERVE_SECONDS = 10.0
_MARGIN = 30.0
_READ_ATTEMPTS = 3
_ALIVE = ("STARTING", "RUNNING", "BACKOFF", "STOPPING")
_HOST = "127.0.0.1"
_PYTHON = (sys.executable, "-I", "-S")


class LocalTaskRunner:
    """The contract is `backends.base.TaskRunner`."""

    def create_task(self, props: TaskProps) -> TaskOutputs:
        """Start the task's launcher, and the controller where it does not run yet."""
        from ..zipapp import version  # whoever only observes a cluster starts nothing

        places = Places(props["cluster"]["home"])
        supervisor = self.start_controller(props["cluster"], props["token"])
        folder = places.task(props["hostname"])
        self._write_settings(places, props)
        command = [*_PYTHON, str(places.agent(version())), "launch", str(folder / "task.json")]
        log, stop_seconds = folder / "launcher.log", props["grace"] + _MARGIN
        supervisor.add(props["hostname"], command, log, stop_seconds, user_umask())
        return {"created_at": controller_calls.now()}

    def update_task(self, old: TaskProps, props: TaskProps) -> TaskOutputs:
        """Write the new limits; the controller's restart queue restarts one task at a time."""
        places = Places(props["cluster"]["home"])
        outputs = self.create_task(props)
        before, after = ({**task["limits"], "cpus": 0, "gpus": task["gpus"]} for task in (old, props))
        if before != after:
            self._call(places, props["token"], "/restarts", {"hostnames": [props["hostname"]]})
        return outputs

    def task_exists(self, props: TaskProps) -> bool:
        """Whether the launcher runs, or has exited because it has nothing more to do."""
        places = Places(props["cluster"]["home"])
        try:
            program = Supervisor(places).program(props["hostname"])
        except Unreachable:
            return False
        if program is None:
            return False
        return program["statename"] in _ALIVE or (program["statename"] == "EXITED" and program["exitstatus"] == 0)

    def delete_task(self, props: TaskProps) -> None:
        """Stop and remove the launcher."""
        places, hostname = Places(props["cluster"]["home"]), props["hostname"]
        if other_machine(places):
            return
        if props.get("is_replaced"):
            Supervisor(places).remove(hostname, _stop_seconds(Record(places.record).current()))
        else:
            self._remove(places, props["token"], [hostname])

    def submit_run(self, props: RunProps) -> RunOutputs:
        """Install the requirements, submit code, secrets and run, and start the launchers that have exited."""
        places = Places(props["cluster"]["home"])
        supervisor = self.start_controller(props["cluster"], props["token"])
        from . import requirements

        run = RunSpec.from_dict(props["run"])
        record = Record(places.record)
        current = record.current()
        is_current = current is not None and current.spec.id == run.id
        path = list(current.spec.path) if current and is_current else []
        if not path or not all(Path(folder).is_dir() for folder in path):
            path = requirements.search_path(run.requirements, partial(noted, props["cluster"], run.requirements))
        run = replace(run, path=path)
        if "://" not in run.train_dir:
            # With the user's umask: the controller, which refuses a folder that cannot be used, would create it with its private one.
            with suppress(OSError):
                Path(run.train_dir).mkdir(parents=True, exist_ok=True)
        self._write_secrets(places, props["secrets"])
        if not is_current or not places.environment(run.id).exists():
            _write_environment(places, run.id, current.spec.id if current else "")
        with places.controller(_CALL_SECONDS, props["token"]) as controller:
            accepted = controller_calls.submit(controller, props, run)
            if current:
                controller_calls.start_launchers(controller, accepted["at"], partial(_start, supervisor))
        return {"submitted_at": controller_calls.now(), "train_dir": accepted["train_dir"]}

    def run_is_current(self, props: RunProps) -> bool:
        """Whether the controller runs and this is its run."""
        places = Places(props["cluster"]["home"])
        try:
            controller = Supervisor(places).program(CONTROLLER)
        except Unreachable:
            return False
        job = Record(places.record).current()
        return bool(controller and controller["statename"] in _ALIVE and job and job.spec.id == props["run"]["id"])

    def stop_run(self, props: RunProps) -> None:
        """Stop the run, and wait until all tasks have stopped."""
        places = Places(props["cluster"]["home"])
        if not other_machine(places):
            stop_run(places, props["token"])

    def delete_unlisted(self, cluster: ClusterRef, token: str, hostnames: Sequence[str]) -> None:
        """Stop and remove the tasks that are not listed."""
        places = Places(cluster["home"])
        if other_machine(places):
            return
        with suppress(Unreachable):
            unlisted = [name for name in Supervisor(places).programs() if name not in (*hostnames, CONTROLLER)]
            self._remove(places, token, unlisted)

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        """Stop the supervisord and every process with the cluster's mark; retain only the checkpoints, and the record unless another
        backend has it."""
        import shutil

        places = Places(cluster["home"])
        if machine := other_machine(places):
            return f"nothing was deleted here: {cluster['id']} is on another computer (machine id {machine})"
        supervisor = Supervisor(places)
        stopped = stop_run(places, token)
        with supervisor.locked():
            supervisor.end(0.0 if stopped else _MARGIN)
            record = Record(places.record)
            if not stopped:
                _add_left(record, places)
            # Of a run that has moved, only here may be checkpoints that were not uploaded.
            has_record = bool(record.runs()) and not retain.get("is_elsewhere")
            parts = (places.record, places.train) if has_record else (places.train,)
            retained = set_aside(places.home, *parts)
            shutil.rmtree(places.home, ignore_errors=True)
            places.lock.unlink(missing_ok=True)
        what = "the record and the checkpoints" if has_record else "the checkpoints"
        return f"{what} are stored in {retained}" if retained else ""

    def observe(self, cluster: ClusterRef, token: str, query: ViewRequest, is_preview: bool = False) -> ObservedState:
        """Ask the controller and the supervisord; read the record where the controller does not respond."""
        places = Places(cluster["home"])
        record = Record(places.record)
        silent_since: float | None = None
        # Without its folder a cluster has nothing; a folder without supervisord has tasks that died.
        engine: dict[str, EngineTask] | None = None if places.home.exists() else {}
        problems: list[str] = []
        try:
            engine = {name: _engine_task(info) for name, info in Supervisor(places).programs().items()}
        except Silent as error:
            engine, problems = None, [error.wrong]
        except Unreachable:
            pass
        try:
            with places.controller(_OBSERVE_SECONDS, token) as controller:
                view = controller_calls.view(controller, query)
        except (OSError, CallError):
            view, silent_since = _recorded(record, query)
        now = time.time()
        folder = str(places.record)
        is_installing = installing(cluster, now)
        return ObservedState(now, view, silent_since, engine, folder, problems=problems, installing=is_installing)

    def start_controller(self, cluster: ClusterRef, token: str) -> Supervisor:
        """The supervisord, with the controller; both are started where they do not run."""
        from ..zipapp import compiled_application, version

        places = Places(cluster["home"])
        supervisor = Supervisor(places)
        with supervisor.locked():
            make_private(places.home)
            write_private(places.identity, json.dumps({**cluster, MACHINE: machine_id()}))
            write_private(places.token, token)
            if not places.agent(version()).exists():
                write_whole(places.agent(version()), compiled_application())
        command = [
            *_PYTHON,
            str(places.agent(version())),
            "controller",
            str(places.record),
            f"{UNIX}{places.controller_socket}",
            str(places.token),
            f"{0o777 & ~user_umask():o}",
        ]
        supervisor.add(CONTROLLER, command, places.home / "controller.log", 10.0)
        return supervisor

    def stop_to_move(self, cluster: ClusterRef) -> "StoppedRun":
        """Stop the run. Its record is read where it is."""
        from ..move_checks import StoppedRun, not_stopped

        places = Places(cluster["home"])
        if machine := other_machine(places):
            wrong = f"its run is on another computer (machine id {machine})"
            raise BackendError(f"{cluster['name']}: {wrong}. Move it from there, or destroy it there.")
        has_stopped = stop_run(places, "", to_move=True)
        with suppress(Unreachable):  # without its supervisord the machine has no task of the run
            if not has_stopped and launchers_live(places):
                raise not_stopped(cluster)
        return StoppedRun(places.record, is_current=True)

    @contextmanager
    def responding_controller(self, props: RunProps) -> Iterator[ControllerApi]:
        """Start the supervisord and the controller."""
        self.start_controller(props["cluster"], props["token"])
        with Places(props["cluster"]["home"]).controller(_CALL_SECONDS, props["token"]) as controller:
            controller_calls.await_controller(controller, props["cluster"]["name"])
            yield controller

    def _write_settings(self, places: Places, props: TaskProps) -> None:
        from ...agent.model.settings import TaskSettings

        folder = places.task(props["hostname"])
        settings = TaskSettings(
            props["hostname"],
            props["job"],
            props["index"],
            controller=f"{UNIX}{places.controller_socket}",
            token=str(folder / "token"),
            folder=str(folder),
            secrets=str(places.secrets),
            host=_HOST,
            port=props["port"],
            limits=limits_of(props),
            gpus=",".join(props["gpus"]),
            environments=str(places.environments),
            machine=props["machine"],
        )
        write_whole(folder / "token", task_token(props["token"], props["hostname"]), mode=0o600)
        write_whole(folder / "task.json", json.dumps(settings.to_dict()), mode=0o600)

    def _write_secrets(self, places: Places, secrets: Mapping[str, str]) -> None:
        make_private(places.secrets)
        for path in places.secrets.iterdir():
            if path.name not in secrets:
                path.unlink()
        for name, value in secrets.items():
            write_private(places.secrets / name, value)

    def _remove(self, places: Places, token: str, hostnames: Sequence[str]) -> None:
        import shutil

        responds = bool(hostnames) and self._call(places, token, "/stop", {"hostnames": list(hostnames)})
        for hostname in hostnames:
            Supervisor(places).remove(hostname, _stop_seconds(Record(places.record).current()))
            if responds:  # otherwise the folder may have output that the record lacks
                shutil.rmtree(places.task(hostname), ignore_errors=True)

    def _call(self, places: Places, token: str, path: str, body: dict[str, Any]) -> bool:
        """Whether the controller has responded."""
        with suppress(OSError, CallError), places.controller(_CALL_SECONDS, token) as controller:
            controller.json("POST", path, body)
            return True
        return False


def _add_left(record: Record, places: Places) -> None:
    """Add what launchers could not send, because the controller had ended."""
    from ..lost_record import add_left_to  # few deletions need it

    for folder in places.tasks.glob("*"):
        add_left_to(record, folder.name, folder)


def _recorded(record: Record, query: ViewRequest) -> tuple[RecordView, float]:
    """The record's view, and when the controller last lived. `pulumi destroy` may move the record in this moment."""
    for _ in range(_READ_ATTEMPTS):
        with suppress(FileNotFoundError):
            return record.view(query, record.current()), record.last_alive()
    return record.view(query, None), 0.0


def stop_run(places: Places, token: str, to_move: bool = False) -> bool:
    """Stop the run; whether all its tasks have stopped."""
    job = Record(places.record).current()
    if job is None:
        return True
    with places.controller(_CALL_SECONDS, token) as controller:
        return controller_calls.stop(controller, lambda: not launchers_live(places), _stop_seconds(job), to_move)


def _write_environment(places: Places, run: str, current: str) -> None:
    """Store what the programs of a new run inherit of this shell. The current run, whose tasks may start again, has its own."""
    make_private(places.environments)
    write_private(places.environment(run), json.dumps({**environment(), MARK: str(places.home)}))
    for path in places.environments.iterdir():
        if path not in (places.environment(run), places.environment(current)):
            path.unlink()


def _start(supervisor: Supervisor, hostnames: Sequence[str]) -> None:
    for hostname in hostnames:
        with suppress(KeyError):
            supervisor.wake(hostname)


def launchers_live(places: Places) -> bool:
    programs = Supervisor(places).programs()
    return any(info["statename"] in _ALIVE for name, info in programs.items() if name != CONTROLLER)


def _stop_seconds(job: RunState | None) -> float:
    """How long a task may take to stop and to send the rest of its output to the controller."""
    return (float(job.spec.grace) if job else 0.0) + _MARGIN


def _engine_task(info: Mapping[str, Any]) -> EngineTask:
    return EngineTask(info["statename"] in _ALIVE, str(info["pid"] or ""), info["statename"])
