"""Tasks as services of a Docker Swarm: a laptop's own engine, or any Swarm that its manager leads to."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import pulumi

from ...agent.protocol import CallError
from ...agent.states import UNKNOWN, Job
from ...errors import BackendError, SpecError, Unreachable
from ...placement import Machine
from ...plan import Plan
from ...spec import JOBS, ClusterSpec
from .. import keeping
from ..base import KEEPER, Cluster, EngineTask, Keep, RunProps, Sight, TaskProps
from ..folders import absolute
from . import clearing, differences, images, machines, names, outfit, refusals, rolling, services
from .engine import Engine, address
from .exec_keeper import keeper_of, present_job
from .mirror import Mirror
from .swarm import Swarm, halted

_KEEPER_SECONDS = 600.0
"""How long the keeper may take to come: its image may have to be pulled."""

_MARGIN = 60.0
if find_spec("pulumi_docker") is None:  # imported where it is used: it takes long
    raise ModuleNotFoundError("No module named 'pulumi_docker'", name="pulumi_docker")

GONE = "TFDEPLOY_ENGINE_IS_GONE"
"""Set to 1, `destroy` forgets what it cannot reach."""


class DockerBackend:
    """Services on a Docker Swarm. The contract is `backends.base.Backend`."""

    heal = "pulumi up --refresh"
    _others = "connected"

    def cluster(self, project: str, stack: str, spec: ClusterSpec) -> Cluster:
        """The handle of a cluster on the engine that the spec, or the environment, names."""
        home = address(spec.engine.docker_host)
        return {"backend": "docker", "project": project, "stack": stack, "name": spec.name, "home": home}

    def machines(self, cluster: Cluster, spec: ClusterSpec) -> Sequence[Machine]:
        """The nodes; those that take no tasks now are not `ready`."""
        return machines.machines(Engine(cluster["home"]), cluster)

    def standing_on(self, cluster: Cluster) -> Mapping[str, str]:
        """Hostname to machine, of the tasks that stand."""
        found = _swarm(cluster).services()
        return {
            name: labels[names.MACHINE]
            for name, item in found.items()
            if names.MACHINE in (labels := item["Spec"]["Labels"])
        }

    def command(self, cluster: Cluster, spec: ClusterSpec) -> tuple[str, ...]:
        """The command that is asked for, else the image's own."""
        return spec.command or refusals.entry_point(Engine(cluster["home"]), spec)

    def image(self, spec: ClusterSpec) -> str:
        """What names the image of a run: its name, or the content of the folder that it is built from."""
        return spec.image or images.content(spec)

    def check(self, cluster: Cluster, spec: ClusterSpec, plan: Plan, code_files: Sequence[str]) -> Sequence[str]:
        """Refuse what cannot work; the warnings."""
        return refusals.refuse(_swarm(cluster), spec, plan, code_files, self.standing_on(cluster))

    def folder(self, cluster: Cluster, spec: ClusterSpec, key: str, program: str) -> str:
        """An absolute path, mounted at the same place, or a URL; a volume of the cluster's where no `train_dir` is given."""
        given = getattr(spec, key)
        if not given:
            return outfit.TRAIN if key == "train_dir" else ""
        folder = absolute(given, program)
        if "://" not in folder:
            refusals.refuse_folder(f"{spec.name}: {key}", folder, Engine(cluster["home"]))
        return folder

    def containers(self, cluster: Cluster, spec: ClusterSpec, plan: Plan) -> Mapping[str, dict[str, Any]]:
        """What the containers of tasks and keeper have, beyond what every task has."""
        return outfit.containers(cluster, spec, plan, outfit.post(Engine(cluster["home"]), cluster, spec, plan))

    def changes(
        self, cluster: Cluster, spec: ClusterSpec, plan: Plan, containers: Mapping[str, dict[str, Any]]
    ) -> Sequence[str]:
        """What the plan changes in services that stand."""
        return differences.sentences(plan, containers, _swarm(cluster).services())

    def unneeded(self, cluster: Cluster, plan: Plan) -> frozenset[str]:
        """None: machines are not ours to make."""
        return frozenset()

    def supply(
        self,
        name: str,
        cluster: Cluster,
        spec: ClusterSpec,
        plan: Plan,
        token: pulumi.Output[str],
        secrets: Mapping[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions,
    ) -> Mapping[str, pulumi.Output[str]]:
        """Register network, secrets, the agent and images with Pulumi's Docker provider."""
        from .supplies import Where, supply

        return supply(name, cluster, spec, token, secrets, opts, Where(cluster["home"], cluster["home"]))

    def stand(self, props: TaskProps) -> Mapping[str, Any]:
        """Make the task's service, or adopt the one of its name."""
        _swarm(props["cluster"]).ensure(services.task(props))
        return {"stood": keeping.now()}

    def change(self, old: TaskProps, props: TaskProps) -> Mapping[str, Any]:
        """Give the service its new settings: while a job runs in the task's turn, else at once."""
        swarm = _swarm(props["cluster"])
        wanted = services.task(props)
        here = swarm.services().get(props["hostname"])
        same = here is not None and here["Spec"]["Labels"].get(names.SPEC) == wanted.labels[names.SPEC]
        at_once = same or here is None or _moves(old, props)
        job = None if at_once else present_job(props["cluster"])
        if at_once or (job is not None and job.verdict is not None):
            swarm.ensure(wanted)
            return {"stood": keeping.now()}
        turns = rolling.turns(f"{props['cluster']['home']} {names.base(props['cluster'])}")
        look = partial(present_job, props["cluster"])
        replace = partial(rolling.replace, swarm, wanted, services.task(old), props["hostname"], look)
        turns.take((JOBS.index(props["job"]), props["index"]), props["hostname"], replace)
        return {"stood": keeping.now()}

    def standing(self, props: TaskProps) -> bool:
        """Whether the engine has its service, with a task; an engine that does not answer is believed to."""
        try:
            found = _swarm(props["cluster"]).services().get(props["hostname"])
            return found is not None and not halted(found)
        except Unreachable:
            return True

    def take_away(self, props: TaskProps) -> None:
        """Stop and remove the task; where the engine does not answer, the sweeper says so."""
        swarm = _swarm(props["cluster"])
        with suppress(Unreachable):
            self._remove(swarm, [props["hostname"]], services.stop_seconds(props["grace"]))

    def _remove(self, swarm: Swarm, hostnames: Sequence[str], seconds: float) -> None:
        if hostnames:
            with suppress(OSError, CallError):
                keeper_of(swarm.cluster).json("POST", "/stop", {"hostnames": list(hostnames)})
            swarm.remove(*hostnames, seconds=seconds + _MARGIN)

    def give(self, props: RunProps) -> Mapping[str, Any]:
        """Make the keeper stand, hand over code and run, and start the launchers that have ended."""
        swarm = _swarm(props["cluster"])
        wanted = services.keeper(props)
        swarm.ensure(wanted)
        keeper = keeper_of(props["cluster"])
        try:
            keeping.wait_for(
                lambda: swarm.came(wanted), f"the keeper of {swarm.cluster['name']} did not come", _KEEPER_SECONDS
            )
            answer = keeping.give(keeper, props, {**props["run"], **_before(props)}, _KEEPER_SECONDS)
        except BackendError as error:
            seen = swarm.tasks().get(KEEPER)
            why = f" ({seen.word}: {seen.reason})" if seen and seen.reason else ""
            raise BackendError(f"{error}{why}") from None
        keeping.wake(keeper, answer, swarm.start)
        Mirror(props["cluster"]).bring_on(keeper)
        clearing.tidy(swarm, props["supplies"].values())
        return {"given": keeping.now(), "train_dir": answer["train_dir"]}

    def given(self, props: RunProps) -> bool:
        """Whether the keeper's service is there and this is its run; an engine that does not answer is believed to have it."""
        try:
            if KEEPER not in _swarm(props["cluster"]).services():
                return False
        except Unreachable:
            return True
        job = present_job(props["cluster"])
        return job is not None and job.run["id"] == props["run"]["id"]

    def dismiss(self, props: RunProps) -> None:
        """Stop the job, and wait until all has stopped."""
        with suppress(Unreachable):
            _stop_job(props["cluster"])

    def sweep(self, cluster: Cluster, token: str, hostnames: Sequence[str]) -> None:
        """Stop and remove the tasks that are not listed."""
        swarm = _swarm(cluster)
        with suppress(Unreachable):
            gone = [name for name in swarm.services() if name not in (*hostnames, KEEPER)]
            self._remove(swarm, gone, services.stop_seconds(_grace(cluster)))

    def clear(self, cluster: Cluster, token: str, keep: Keep) -> str:
        """Remove all that carries the cluster's labels; only the copy of the record stays, and volumes if asked for."""
        mirror = Mirror(cluster)
        try:
            _stop_job(cluster)
            mirror.bring_home(keeper_of(cluster))
            clearing.clear(_swarm(cluster), services.stop_seconds(_grace(cluster)) + _MARGIN, keep["volumes"])
        except Unreachable as error:
            if os.environ.get(GONE) != "1":
                raise Unreachable(
                    f"{error}: what {cluster['name']} has there cannot be removed. Mend the connection and destroy again; "
                    f"when that engine is gone for good, `{GONE}=1 pulumi destroy` forgets it"
                ) from None
        return mirror.end()

    def look(self, cluster: Cluster, token: str, ask: Mapping[str, Any]) -> Sight:
        """Ask the keeper and the Swarm; read the copy of the record where the keeper does not answer."""
        mirror = Mirror(cluster)
        engine: Mapping[str, EngineTask] | None = None
        words: Mapping[str, str] = {}
        addresses: Mapping[str, str] = {}
        problems: list[str] = []
        others = UNKNOWN
        try:
            words, addresses = self._seen(cluster)
            others = self._others
            engine = _swarm(cluster).tasks()
        except (Unreachable, SpecError) as error:
            problems.append(str(error))
        silent: float | None = None
        try:
            if engine is not None and KEEPER not in engine:
                raise Unreachable("there is no keeper")
            answer = mirror.bring_on(keeper_of(cluster))
            job = Job.from_dict(answer["job"]) if answer["job"] else None
            view = {**mirror.record.view(dict(ask), job), "at": answer["at"]}
        except (OSError, CallError):
            job = mirror.record.current()
            view, silent = mirror.record.view(dict(ask), job), mirror.record.last_alive()
        tasks = {name: task for name, task in engine.items() if name != KEEPER} if engine is not None else None
        keeper = (engine or {}).get(KEEPER)
        if keeper is not None and keeper.reason:
            problems.append(f"the keeper is {keeper.word}: {keeper.reason}")
        return Sight(
            time.time(),
            view,
            silent,
            tasks,
            str(mirror.folder),
            words,
            problems,
            addresses,
            others,
            self._cost(cluster),
        )

    def _seen(self, cluster: Cluster) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The status of machines that are not connected, and the public addresses of all."""
        return machines.statuses(Engine(cluster["home"])), {}

    def _cost(self, cluster: Cluster) -> Mapping[str, Any]:
        """What the machines cost (`Sight.cost`)."""
        return {}


def _before(props: RunProps) -> dict[str, str]:
    """The folder in which this run has trained, when the copy of the record tells it: the keeper may be a new one."""
    known = Mirror(props["cluster"]).record.load(props["run"]["id"])
    return {"before": known.run["train_dir"]} if known else {}


def _moves(old: TaskProps, props: TaskProps) -> bool:
    """Whether a task goes to another network, where none of those that stay would hear it."""
    before, after = old["container"], props["container"]
    networks = old["supplies"].get("network"), props["supplies"].get("network")
    return before.get("network") != after["network"] or networks[0] != networks[1]


def _swarm(cluster: Cluster) -> Swarm:
    return Swarm(Engine(cluster["home"]), cluster)


def _grace(cluster: Cluster) -> float:
    job = present_job(cluster) or Mirror(cluster).record.current()
    return float(job.run["grace"]) if job else 0.0


def _stop_job(cluster: Cluster) -> None:
    swarm = _swarm(cluster)

    def over() -> bool:
        return not any(task.alive for name, task in swarm.tasks().items() if name != KEEPER)

    if KEEPER in swarm.services():
        keeping.stop(keeper_of(cluster), over, _grace(cluster) + _MARGIN)


BACKEND = DockerBackend()
