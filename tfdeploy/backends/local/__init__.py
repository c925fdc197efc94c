"""Tasks as processes of this machine."""

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ...agent.protocol import UNIX, CallError, Client
from ...agent.record import Record
from ...agent.states import Job
from ...application import application, version
from ...errors import Unreachable
from ...placement import Machine
from ...plan import Plan
from ...spec import ClusterSpec
from .. import keeping
from ..base import KEEPER, Cluster, EngineTask, Keep, RunProps, Sight, TaskProps
from ..folders import absolute, cluster_folder, make_private, put_by, runtime_root, state_folder
from . import capacity, packages, refusals
from .places import Places, write_private
from .supervisor import Supervisor

_CALL_SECONDS = 30.0
_LOOK_SECONDS = 10.0
_MARGIN = 30.0
_ALIVE = ("STARTING", "RUNNING", "BACKOFF", "STOPPING")
_HOST = "127.0.0.1"


class LocalBackend:
    """Processes, kept by one supervisord for each cluster. The contract is `backends.base.Backend`."""

    heal = "pulumi up --refresh"

    def cluster(self, project: str, stack: str, spec: ClusterSpec) -> Cluster:
        """The handle of a cluster of this machine."""
        home = state_folder() / "clusters" / cluster_folder(project, stack, spec.name)
        return {"backend": "local", "project": project, "stack": stack, "name": spec.name, "home": str(home)}

    def machines(self, cluster: Cluster, spec: ClusterSpec) -> Sequence[Machine]:
        """This machine."""
        return [capacity.this_machine()]

    def standing_on(self, cluster: Cluster) -> Mapping[str, str]:
        """Nothing: there is no choice."""
        return {}

    def command(self, cluster: Cluster, spec: ClusterSpec) -> tuple[str, ...]:
        """The command that is asked for."""
        return spec.command

    def image(self, spec: ClusterSpec) -> str:
        """None."""
        return ""

    def check(self, cluster: Cluster, spec: ClusterSpec, plan: Plan, code_files: Sequence[str]) -> Sequence[str]:
        """Refuse a missing program, requirement, folder, or a taken port."""
        refusals.refuse_program(spec, code_files)
        refusals.refuse_packages(spec)
        refusals.refuse_ports(plan, cluster["home"])
        refusals.refuse_folders(spec, plan.run["data_dir"])
        return ()

    def containers(self, cluster: Cluster, spec: ClusterSpec, plan: Plan) -> Mapping[str, dict[str, Any]]:
        """None: tasks are processes."""
        return {}

    def changes(
        self, cluster: Cluster, spec: ClusterSpec, plan: Plan, containers: Mapping[str, dict[str, Any]]
    ) -> Sequence[str]:
        """Which tasks start again under other limits."""
        places = Places(cluster["home"])
        told = []
        for task in plan.tasks:
            with suppress(OSError, ValueError, KeyError):
                known = json.loads((places.task(task.hostname) / "task.json").read_text())
                if (known["memory"], known["gpus"]) != (task.memory, ",".join(task.gpus)):
                    told.append(task.hostname)
        return [f"{', '.join(told)}: other limits: while they run, they start again one at a time"] if told else []

    def supply(
        self,
        name: str,
        cluster: Cluster,
        spec: ClusterSpec,
        plan: Plan,
        token: Any,
        secrets: Mapping[str, Any],
        opts: Any,
    ) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def unneeded(self, cluster: Cluster, plan: Plan) -> frozenset[str]:
        """None: this machine is there."""
        return frozenset()

    def folder(self, cluster: Cluster, spec: ClusterSpec, key: str, program: str) -> str:
        """An absolute path, or a URL; `train_dir` is the cluster's own where none is given."""
        given = spec.data_dir if key == "data_dir" else spec.train_dir or str(Places(cluster["home"]).train)
        return absolute(given, program)

    def stand(self, props: TaskProps) -> Mapping[str, Any]:
        """Start the task's launcher; the keeper too, where it does not run yet."""
        places = Places(props["cluster"]["home"])
        supervisor = self._engine(places, props["token"])
        folder = places.task(props["hostname"])
        self._write_settings(places, props)
        command = [*_python(), str(places.agent(version())), "launch", str(folder / "task.json")]
        supervisor.add(props["hostname"], command, folder / "launcher.log", props["grace"] + _MARGIN)
        return {"stood": keeping.now()}

    def change(self, old: TaskProps, props: TaskProps) -> Mapping[str, Any]:
        """Write the new limits down, and have the keeper start the child again under them when its turn comes."""
        places = Places(props["cluster"]["home"])
        done = self.stand(props)
        if (old["memory"], old["gpus"]) != (props["memory"], props["gpus"]):
            self._call(places, props["token"], "/roll", {"hostnames": [props["hostname"]]})
        return done

    def standing(self, props: TaskProps) -> bool:
        """Whether its launcher runs, or has ended because there is nothing more to do."""
        places = Places(props["cluster"]["home"])
        try:
            program = Supervisor(places).programs().get(props["hostname"])
        except Unreachable:
            return False
        if program is None:
            return False
        return program["statename"] in _ALIVE or (program["statename"] == "EXITED" and program["exitstatus"] == 0)

    def take_away(self, props: TaskProps) -> None:
        """Stop and remove the task."""
        self._remove(Places(props["cluster"]["home"]), props["token"], [props["hostname"]])

    def give(self, props: RunProps) -> Mapping[str, Any]:
        """Install the requirements, hand over code, secrets and run, and wake the launchers."""
        places = Places(props["cluster"]["home"])
        supervisor = self._engine(places, props["token"])
        run = {**props["run"], "path": packages.search_path(props["run"]["requirements"])}
        record = Record(places.record)
        first = record.current() is None
        self._write_secrets(places, props["secrets"])
        with _keeper(places, props["token"]) as keeper:
            given = keeping.give(keeper, props, run)
            if not first:
                keeping.wake(keeper, given, partial(_wake, supervisor))
        return {"given": keeping.now(), "train_dir": given["train_dir"]}

    def given(self, props: RunProps) -> bool:
        """Whether the keeper runs and this is its run."""
        places = Places(props["cluster"]["home"])
        try:
            keeper = Supervisor(places).programs().get(KEEPER)
        except Unreachable:
            return False
        job = Record(places.record).current()
        return bool(keeper and keeper["statename"] in _ALIVE and job and job.run["id"] == props["run"]["id"])

    def dismiss(self, props: RunProps) -> None:
        """Stop the job, and wait until all has stopped."""
        _stop_job(Places(props["cluster"]["home"]), props["token"])

    def sweep(self, cluster: Cluster, token: str, hostnames: Sequence[str]) -> None:
        """Stop and remove the tasks that are not listed."""
        places = Places(cluster["home"])
        with suppress(Unreachable):
            gone = [name for name in Supervisor(places).programs() if name not in (*hostnames, KEEPER)]
            self._remove(places, token, gone)

    def clear(self, cluster: Cluster, token: str, keep: Keep) -> str:
        """End the supervisord and every process with the cluster's mark; keep only the record and the checkpoints."""
        places = Places(cluster["home"])
        supervisor = Supervisor(places)
        stopped = _stop_job(places, token)
        with supervisor.locked():
            supervisor.end(0.0 if stopped else _MARGIN)
            shutil.rmtree(places.runtime, ignore_errors=True)
            kept = put_by(places.home, places.record, places.train)
            shutil.rmtree(places.home, ignore_errors=True)
            places.lock.unlink(missing_ok=True)
        with suppress(OSError):
            runtime_root().rmdir()
        return f"the record and the checkpoints are kept in {kept}" if kept else ""

    def look(self, cluster: Cluster, token: str, ask: Mapping[str, Any]) -> Sight:
        """Ask the keeper and the supervisord; read the record where the keeper does not answer."""
        places = Places(cluster["home"])
        record = Record(places.record)
        silent: float | None = None
        try:
            with _keeper(places, token or places.known_token, _LOOK_SECONDS) as keeper:
                view = keeper.json("POST", "/look", dict(ask))
        except (OSError, CallError):
            view, silent = record.view(dict(ask), record.current()), record.last_alive()
        engine = None
        with suppress(Unreachable):
            engine = {name: _engine_task(info) for name, info in Supervisor(places).programs().items()}
        return Sight(time.time(), view, silent, engine, str(places.record))

    def _engine(self, places: Places, token: str) -> Supervisor:
        """The supervisord with its keeper, started where they do not run."""
        supervisor = Supervisor(places)
        with supervisor.locked():
            make_private(places.home)
            make_private(places.runtime)
            write_private(places.token, token)
            _write_application(places.agent(version()))
        command = [
            *_python(),
            str(places.agent(version())),
            "keep",
            str(places.record),
            f"{UNIX}{places.keeper_socket}",
        ]
        supervisor.add(KEEPER, [*command, str(places.token)], places.home / "keeper.log", 10.0)
        return supervisor

    def _write_settings(self, places: Places, props: TaskProps) -> None:
        settings = {
            **{key: props[key] for key in ("hostname", "job", "index", "machine", "memory", "gpus", "port")},
            "keeper": f"{UNIX}{places.keeper_socket}",
            "token": str(places.token),
            "folder": str(places.task(props["hostname"])),
            "secrets": str(places.secrets),
            "container": "",
            "host": _HOST,
        }
        write_private(places.task(props["hostname"]) / "task.json", json.dumps(settings))

    def _write_secrets(self, places: Places, secrets: Mapping[str, str]) -> None:
        make_private(places.secrets)
        for path in places.secrets.iterdir():
            if path.name not in secrets:
                path.unlink()
        for name, value in secrets.items():
            write_private(places.secrets / name, value)

    def _remove(self, places: Places, token: str, hostnames: Sequence[str]) -> None:
        if hostnames:
            self._call(places, token, "/stop", {"hostnames": list(hostnames)})
        for hostname in hostnames:
            Supervisor(places).remove(hostname, _patience(Record(places.record).current()))
            shutil.rmtree(places.task(hostname), ignore_errors=True)

    def _call(self, places: Places, token: str, path: str, body: dict[str, Any]) -> None:
        with suppress(OSError, CallError), _keeper(places, token) as keeper:
            keeper.json("POST", path, body)


def _keeper(places: Places, token: str, seconds: float = _CALL_SECONDS) -> Client:
    return Client(f"{UNIX}{places.keeper_socket}", token, seconds)


def _stop_job(places: Places, token: str) -> bool:
    job = Record(places.record).current()
    if job is None:
        return True
    with _keeper(places, token or places.known_token) as keeper:
        return keeping.stop(keeper, lambda: not _launchers_live(places), _patience(job))


def _wake(supervisor: Supervisor, hostnames: Sequence[str]) -> None:
    for hostname in hostnames:
        with suppress(KeyError):
            supervisor.wake(hostname)


def _launchers_live(places: Places) -> bool:
    programs = Supervisor(places).programs()
    return any(info["statename"] in _ALIVE for name, info in programs.items() if name != KEEPER)


def _patience(job: Job | None) -> float:
    """Seconds that a task may take to stop, with all that it printed sent to the keeper."""
    return (float(job.run["grace"]) if job else 0.0) + _MARGIN


def _python() -> list[str]:
    return [sys.executable, "-I", "-S"]


def _write_application(path: Path) -> None:
    if not path.exists():
        draft = path.with_suffix(".draft")
        draft.write_bytes(application())
        draft.replace(path)


def _engine_task(info: Mapping[str, Any]) -> EngineTask:
    return EngineTask(info["statename"] in _ALIVE, str(info["pid"] or ""), info["statename"])


BACKEND = LocalBackend()
