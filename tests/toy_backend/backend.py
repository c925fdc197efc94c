"""A batch system like Slurm: each task is a job with a time limit on a node that the system chooses, and the controller runs on the
login node. To tfdeploy a job is neither a container nor a process of this computer.

A job whose time is over is queued again, as `sbatch --requeue` does: https://slurm.schedmd.com/sbatch.html.
"""

import hashlib
import json
import os
import platform
import shutil
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pulumi

from tests.toy_backend.processes import JOB_SECONDS, Group
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.agent.model.task_dump import TaskDump
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.agent.system.files import write_whole
from tfdeploy.agent.wire.rpc import UNIX, CallError, Client, task_token
from tfdeploy.backends import controller_calls
from tfdeploy.backends.backend import Backend
from tfdeploy.backends.base import (
    CONTROLLER,
    OK,
    Check,
    ClusterRef,
    DiscoveredCluster,
    Discovery,
    EngineTask,
    ObservedState,
    Planner,
    Retain,
    RunOutputs,
    RunProps,
    TaskAccess,
    TaskOutputs,
    TaskProps,
    TaskRunner,
)
from tfdeploy.backends.controller_calls import ControllerApi
from tfdeploy.backends.move_checks import StoppedRun
from tfdeploy.backends.validate import refuse_same_ports, refuse_script
from tfdeploy.backends.zipapp import compiled_application, version
from tfdeploy.paths import absolute, make_private, runtime_root, set_aside, state_folder
from tfdeploy.plan.inventory import Inventory
from tfdeploy.plan.plan import Plan
from tfdeploy.spec.cluster import ClusterSpec

_STOP_MARGIN = 30.0
_NODES = ("node-a", "node-b")


class ToyPlanner(Planner[Inventory]):
    """The contract is `backends.base.Planner`."""

    def home(self, folder: str, spec: ClusterSpec, providers: Mapping[str, pulumi.ProviderResource]) -> str:
        return str(state_folder() / "toys" / folder)

    def inspect(self, cluster: ClusterRef, spec: ClusterSpec, program_folder: Path) -> Inventory:
        home = Path(cluster["home"])
        return Inventory(
            machines=(),
            train_dir=absolute(spec.train_dir or str(home / "train"), str(program_folder)),
            data_dir=absolute(spec.data_dir, str(program_folder)),
            run=Record(home / "record").current() if home.exists() else None,
            places_tasks=True,
        )

    def validate(
        self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: Inventory, code_files: Sequence[str]
    ) -> Sequence[str]:
        refuse_script(spec, code_files)
        refuse_same_ports(plan)
        return ()


class _Home:
    """The files and the processes of one cluster."""

    def __init__(self, cluster: ClusterRef) -> None:
        self.folder = Path(cluster["home"])
        self.record = Record(self.folder / "record")
        self.token = self.folder / "token"
        self.secrets = self.folder / "secrets"
        self.agent = self.folder / f"agent-{version()}.pyz"
        # The path of a socket is short.
        self.socket = runtime_root() / f"toy-{hashlib.sha256(cluster['home'].encode()).hexdigest()[:12]}"

    def task(self, hostname: str) -> Path:
        return self.folder / "tasks" / hostname

    def node(self, hostname: str) -> str:
        """The node that has the task, else the one with the fewest tasks."""
        nodes = {
            path.parent.name: json.loads(path.read_text())["machine"] for path in self.folder.glob("tasks/*/task.json")
        }
        counts = Counter(nodes.values())
        return nodes.get(hostname) or min(_NODES, key=lambda node: counts[node])

    def hostnames(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("tasks/*"))

    def group(self, hostname: str) -> Group:
        return Group(self.folder if hostname == CONTROLLER else self.task(hostname))

    def prepare(self, cluster: ClusterRef, token: str) -> None:
        """Write the files that every task needs, and start the controller where it does not run."""
        for folder in (self.folder, self.secrets, runtime_root()):
            make_private(folder)
        write_whole(self.folder / "cluster.json", json.dumps(cluster))
        write_whole(self.token, token)
        if not self.agent.exists():
            draft = self.agent.with_suffix(f".{time.monotonic_ns()}")
            draft.write_bytes(compiled_application())
            draft.replace(self.agent)
        self.group(CONTROLLER).start(
            [*self.command("controller"), str(self.record.folder), f"{UNIX}{self.socket}", str(self.token)]
        )

    def command(self, verb: str) -> list[str]:
        return [sys.executable, "-I", "-S", str(self.agent), verb]

    def start(self, hostnames: Sequence[str]) -> None:
        for hostname in hostnames:
            settings = self.task(hostname) / "task.json"
            if settings.exists():
                self.group(hostname).start([*self.command("launch"), str(settings)], os.environ.get(JOB_SECONDS, "0"))

    def controller(self) -> Client:
        token = self.token.read_text() if self.token.exists() else ""
        return Client(f"{UNIX}{self.socket}", token, 10.0)

    def stop_seconds(self) -> float:
        run = self.record.current()
        return (float(run.spec.grace) if run else 0.0) + _STOP_MARGIN

    def remove(self, hostnames: Sequence[str]) -> None:
        if not hostnames:
            return
        with suppress(OSError, CallError), self.controller() as controller:
            controller.json("POST", "/stop", {"hostnames": list(hostnames)})
        for hostname in hostnames:
            self.group(hostname).stop(self.stop_seconds())
            shutil.rmtree(self.task(hostname), ignore_errors=True)

    def stop_run(self, to_move: bool = False) -> None:
        if self.record.current() is not None:
            with self.controller() as controller:
                has_ended = lambda: not any(self.group(name).alive() for name in self.hostnames())  # noqa: E731
                controller_calls.stop(controller, has_ended, self.stop_seconds(), to_move)


class ToyTaskRunner(TaskRunner):
    """The contract is `backends.base.TaskRunner`."""

    def create_task(self, props: TaskProps) -> TaskOutputs:
        home = _Home(props["cluster"])
        with Group.lock(runtime_root() / f"{home.socket.name}.lock"):
            home.prepare(props["cluster"], props["token"])
            home.task(props["hostname"]).mkdir(parents=True, exist_ok=True)
        settings = {
            **{key: props[key] for key in ("hostname", "job", "index", "limits", "port")},
            "machine": props["machine"] or home.node(props["hostname"]),
            "gpus": ",".join(props["gpus"]),
            "controller": f"{UNIX}{home.socket}",
            "token": str(home.task(props["hostname"]) / "token"),
            "folder": str(home.task(props["hostname"])),
            "secrets": str(home.secrets),
            "container": "",
            "host": "127.0.0.1",
        }
        write_whole(home.task(props["hostname"]) / "token", task_token(props["token"], props["hostname"]))
        write_whole(home.task(props["hostname"]) / "task.json", json.dumps(settings))
        home.start([props["hostname"]])
        return {"created_at": controller_calls.now()}

    def update_task(self, old: TaskProps, props: TaskProps) -> TaskOutputs:
        outputs = self.create_task(props)
        with suppress(OSError, CallError), _Home(props["cluster"]).controller() as controller:
            controller.json("POST", "/restarts", {"hostnames": [props["hostname"]]})
        return outputs

    def delete_task(self, props: TaskProps) -> None:
        _Home(props["cluster"]).remove([props["hostname"]])

    def task_exists(self, props: TaskProps) -> bool:
        group = _Home(props["cluster"]).group(props["hostname"])
        return group.alive() or group.ended_well()

    def submit_run(self, props: RunProps) -> RunOutputs:
        home = _Home(props["cluster"])
        home.prepare(props["cluster"], props["token"])
        for name, value in props["secrets"].items():
            write_whole(home.secrets / name, value)
        run = replace(RunSpec.from_dict(props["run"]), path=[str(Path(sys.executable).parent)])
        with home.controller() as controller:
            accepted = controller_calls.submit(controller, props, run)
            controller_calls.start_launchers(controller, accepted["at"], home.start)
        return {"submitted_at": controller_calls.now(), "train_dir": accepted["train_dir"]}

    def run_is_current(self, props: RunProps) -> bool:
        home = _Home(props["cluster"])
        run = home.record.current() if home.group(CONTROLLER).alive() else None
        return run is not None and run.spec.id == props["run"]["id"]

    def stop_run(self, props: RunProps) -> None:
        _Home(props["cluster"]).stop_run()

    def observe(self, cluster: ClusterRef, token: str, query: ViewRequest, is_preview: bool = False) -> ObservedState:
        home = _Home(cluster)
        engine = {name: EngineTask(home.group(name).alive(), "", "process") for name in home.hostnames()}
        silent_since = None
        try:
            with home.controller() as controller:
                view = controller_calls.view(controller, query)
        except (OSError, CallError):
            view, silent_since = home.record.view(query, home.record.current()), home.record.last_alive()
        return ObservedState(time.time(), view, silent_since, engine, str(home.record.folder))

    def delete_unlisted(self, cluster: ClusterRef, token: str, hostnames: Sequence[str]) -> None:
        home = _Home(cluster)
        home.remove([name for name in home.hostnames() if name not in hostnames])

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        home = _Home(cluster)
        home.stop_run()
        home.remove(home.hostnames())
        home.group(CONTROLLER).stop(_STOP_MARGIN)
        parts = [home.folder / "train"] if retain.get("is_elsewhere") else [home.record.folder, home.folder / "train"]
        archive = set_aside(home.folder, *parts)
        shutil.rmtree(home.folder, ignore_errors=True)
        home.socket.unlink(missing_ok=True)
        (runtime_root() / f"{home.socket.name}.lock").unlink(missing_ok=True)
        return f"the record and the checkpoints are kept in {archive}" if archive else ""

    def stop_to_move(self, cluster: ClusterRef) -> StoppedRun:
        home = _Home(cluster)
        home.stop_run(to_move=True)
        return StoppedRun(home.record.folder, is_current=True)

    @contextmanager
    def responding_controller(self, props: RunProps) -> Iterator[ControllerApi]:
        home = _Home(props["cluster"])
        home.prepare(props["cluster"], props["token"])
        with home.controller() as controller:
            controller_calls.await_controller(controller, props["cluster"]["name"])
            yield controller


class ToyAccess(TaskAccess):
    """The contract is `backends.base.TaskAccess`; the toy reaches no task."""

    def stop_training(self, cluster: ClusterRef, time_limit: float = 0.0) -> None:
        with _Home(cluster).controller() as controller:
            controller_calls.stop_training(controller, cluster["name"], time_limit)

    def dumps(self, cluster: ClusterRef, hostnames: Collection[str]) -> Mapping[str, TaskDump]:
        with _Home(cluster).controller() as controller:
            return controller_calls.take_dumps(controller, cluster["name"], hostnames)


def discover(place: str = "") -> list[DiscoveredCluster]:
    """All clusters of this user."""
    files = (state_folder() / "toys").glob("*/cluster.json")
    return [DiscoveredCluster(json.loads(file.read_text()), {"folder": 1}) for file in files]


def health(place: str = "") -> list[Check]:
    """A toy needs nothing."""
    return [Check("python", OK, platform.python_version())]


_runner = ToyTaskRunner()

BACKEND = Backend(
    ToyPlanner,
    lambda: _runner,
    ToyAccess,
    Discovery(discover, health),
    "pulumi up --refresh",
)
