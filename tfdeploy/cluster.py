"""The component: spec → plan → backend → report."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakKeyDictionary

import pulumi

from . import registry
from .application import version
from .arguments import TensorFlowClusterArgs
from .backends.base import KEEPER, load
from .configuration import resolved, shown
from .errors import SpecError, TfdeployError
from .observe import Watch
from .outline import outline
from .plan import Given, TaskPlan, consequences, make_plan
from .quantities import DURATION_FORM, seconds
from .report import Report
from .resources import Run, Sweeper, Task
from .spec import cluster_spec
from .versions import versions
from .waiting import observed

if TYPE_CHECKING:
    from .bundle import Bundle

TYPE = "tfdeploy:index:TensorFlowCluster"

_NEVER = "1970-01-01T00:00:00+00:00"
"""When a run was given that is over and has left nothing to stand."""

_names: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


class TensorFlowCluster(pulumi.ComponentResource):
    """A TensorFlow cluster: parameter servers and workers that know each other, and the training that they do.

    `pulumi up` makes it stand, waits for the job's end as long as `wait` says, and fails when the job has failed; the outputs are
    recorded all the same. Another `up` never trains again, unless command, arguments, environment, code, data or `run_id` have
    changed. See `TensorFlowClusterArgs` for the arguments, which may be given one by one or in `args`.

    Raises:
        pulumi.RunError: an argument is refused; nothing has been made then.
    """

    status: pulumi.Output[str]
    """The machines and the tasks as two tables, and what the job has come to."""

    tasks: pulumi.Output[list[dict[str, Any]]]
    """A row for each task: hostname, job, index, machine, container (a process id on `local`), command, status, exit_code,
    created, address, public_ip."""

    machines: pulumi.Output[list[dict[str, Any]]]
    """A row for each machine: machine, role, provider, region, size, public_ip, status; on `ec2` also per_hour and spent: USD, None
    where the price is unknown."""

    state: pulumi.Output[str]
    """What the job has come to, in one word: starting, running, succeeded, failed, stopped or unknown."""

    logs: pulumi.Output[dict[str, list[str]]]
    """The last lines of each task, by hostname; `log_lines` says how many."""

    metrics: pulumi.Output[dict[str, Any]]
    """What each pattern of `metrics` found: a number, or a text that is none; None while it has found nothing."""

    endpoints: pulumi.Output[dict[str, str]]
    """Where each task is reached, by hostname: host:port."""

    cost: pulumi.Output[dict[str, Any]]
    """What the machines on `ec2` cost: currency; per_hour (now), spent (so far, by all machines that there have been) and maximum
    (when those that stand have ended themselves), each None where a price is unknown or, of maximum, there is none; told, the same
    in words; prices_of, the day of the prices; after, what bills on when the machines are gone; idle and lifetime, the seconds
    without a task, and since their start, after which machines end themselves (0 for never). Empty on `local` and `docker`."""

    observed_at: pulumi.Output[str]
    """When all this was seen (UTC)."""

    def __init__(
        self,
        name: str,
        args: TensorFlowClusterArgs = {},  # noqa: B006
        opts: pulumi.ResourceOptions | None = None,
        **kwargs: Unpack[TensorFlowClusterArgs],
    ) -> None:
        try:
            asked = _prepared(name, {**args, **kwargs})
        except TfdeployError as error:
            raise pulumi.RunError(str(error)) from None
        super().__init__(TYPE, name, {}, opts)
        if not pulumi.runtime.is_dry_run():
            _remember(asked)
        seen = self._stand(name, asked)
        self.status = seen.apply(lambda report: report.status)
        self.tasks = seen.apply(lambda report: report.tasks)
        self.machines = seen.apply(lambda report: report.machines)
        self.state = seen.apply(lambda report: report.state)
        self.logs = seen.apply(lambda report: report.logs)
        self.metrics = seen.apply(lambda report: report.metrics)
        self.endpoints = seen.apply(lambda report: report.endpoints)
        self.cost = seen.apply(lambda report: report.cost)
        self.observed_at = seen.apply(lambda report: report.observed_at)
        outputs = ("status", "tasks", "machines", "state", "logs", "metrics", "endpoints", "cost", "observed_at")
        self.register_outputs({output: getattr(self, output) for output in outputs})

    def _stand(self, name: str, asked: "_Asked") -> pulumi.Output[Report]:
        """Register what the cluster is made of; the report of it once it stands."""
        watch = asked.watch
        sweeper = Sweeper(
            f"{name}-sweeper",
            watch.cluster,
            [task.hostname for task in watch.plan.tasks],
            {"volumes": watch.spec.engine.keep_volumes, "record": watch.spec.fleet.keep_record},
            pulumi.ResourceOptions(parent=self),
        )
        stood = self._stand_tasks(name, asked, sweeper) if watch.plan.standing else [pulumi.Output.from_input(_NEVER)]

        async def look(known: list[Any]) -> Report:
            watch.token = known[0]
            return await observed(watch, known[1])

        # Not the token's secrecy but its value is of use: nothing of it is in the report.
        return pulumi.Output.unsecret(pulumi.Output.all(sweeper.token, *stood).apply(look))

    def _stand_tasks(self, name: str, asked: "_Asked", sweeper: Sweeper) -> list[pulumi.Output[str]]:
        """Register tasks and run, and what they need; what only the backend knows of them, the run's first."""
        watch, cluster = asked.watch, asked.watch.cluster
        after_sweeper = pulumi.ResourceOptions(parent=self, depends_on=[sweeper])
        supplies = watch.backend.supply(
            name, cluster, watch.spec, watch.plan, sweeper.token, asked.secrets, after_sweeper
        )
        tasks = [
            Task(f"{name}-{task.hostname}", _task_props(asked, task, sweeper.token, supplies), after_sweeper)
            for task in watch.plan.standing
        ]
        run = Run(
            f"{name}-run",
            {
                "cluster": watch.cluster,
                "token": sweeper.token,
                "run": dict(watch.plan.run),
                "code_folder": str(asked.bundle.folder.absolute()) if asked.bundle else "",
                "code_without": [str(path) for path in asked.without],
                "secrets": pulumi.Output.secret(dict(asked.secrets)),
                "container": asked.containers.get(KEEPER, {}),
                "supplies": dict(supplies),
            },
            pulumi.ResourceOptions(parent=self, depends_on=[sweeper, *tasks]),
        )
        return [run.given, *(task.stood for task in tasks)]


@dataclass
class _Asked:
    watch: Watch
    bundle: "Bundle | None"
    without: list[Path]
    secrets: Mapping[str, pulumi.Input[str]]
    containers: Mapping[str, dict[str, Any]]
    options: Mapping[str, str]


def _prepared(name: str, given: Mapping[str, Any]) -> _Asked:
    """All that can be known, and refused, before anything is registered."""
    _refuse_twin(name)
    args = resolved(name, given, pulumi.Config("tfdeploy"))
    if "TFDEPLOY_WAIT" in os.environ:
        args["wait"] = _wait(os.environ["TFDEPLOY_WAIT"])
    spec = cluster_spec(name, args)
    backend = load(spec.backend)
    cluster = backend.cluster(pulumi.get_project(), pulumi.get_stack(), spec)
    spec = replace(spec, command=backend.command(cluster, spec))
    program = Path.cwd()
    data_dir = backend.folder(cluster, spec, "data_dir", str(program))
    train_dir = backend.folder(cluster, spec, "train_dir", str(program))
    without = [program / "__main__.py", *(Path(path) for path in (data_dir, train_dir) if path.startswith("/"))]
    bundle = _bundle(name, program / spec.code, without) if spec.code else None
    known = Given(bundle.name if bundle else "", train_dir, data_dir, backend.image(spec))
    plan = make_plan(spec, backend.machines(cluster, spec), known, backend.standing_on(cluster))
    plan = replace(plan, unneeded=backend.unneeded(cluster, plan))
    warnings = [*backend.check(cluster, spec, plan, bundle.files if bundle else ()), *plan.warnings]
    asked = _Asked(
        Watch(backend, cluster, spec, plan),
        bundle,
        without,
        args.get("secrets", {}),
        backend.containers(cluster, spec, plan),
        {key: shown(key, value) for key, value in args.items()},
    )
    if pulumi.runtime.is_dry_run():
        _tell(asked, warnings)
    return asked


def _tell(asked: "_Asked", warnings: Sequence[str]) -> None:
    """What the plan is, and what it does to what stands."""
    watch = asked.watch
    code = f"; code: {asked.bundle}" if asked.bundle else ""
    changes = watch.backend.changes(watch.cluster, watch.spec, watch.plan, asked.containers)
    over = [f"  {name} is gone and is not made again: the run is over" for name in sorted(watch.plan.unneeded)]
    lines = [
        f"{watch.plan.summary}{code}",
        *watch.plan.places,
        *over,
        *consequences(watch.plan, watch.job_before()),
        *changes,
    ]
    pulumi.log.info("\n".join(lines))
    for text in warnings:
        pulumi.log.warn(f"{watch.spec.name}: {text}.")


def _remember(asked: "_Asked") -> None:
    """Have whoever looks find the cluster from now on."""
    watch = asked.watch
    shape = outline(watch.plan, watch.spec)
    about = (watch.cluster, str(Path.cwd()), shape, asked.options, versions())
    whose = pulumi.get_organization()
    registry.write(registry.Entry(*about, begun=time.time(), login=registry.login(), organization=whose))


def _wait(text: str) -> float:
    try:
        return seconds(text)
    except ValueError:
        raise SpecError("TFDEPLOY_WAIT", f"{text!r} is no duration", f"It takes {DURATION_FORM}.") from None


def _bundle(name: str, folder: Path, without: list[Path]) -> "Bundle":
    # What understands .gitignore takes long to load: only where code is shipped.
    from .bundle import collect

    return collect(name, folder, without)


def _refuse_twin(name: str) -> None:
    names = _names.setdefault(pulumi.runtime.settings.get_monitor(), set())
    if name in names:
        raise SpecError("TensorFlowCluster", f"the name {name!r} is given twice in this program", "Choose another.")
    names.add(name)


def _task_props(
    asked: _Asked, task: TaskPlan, token: pulumi.Output[str], supplies: Mapping[str, pulumi.Output[str]]
) -> dict[str, Any]:
    own = {key: value for key, value in supplies.items() if not key.startswith("image-") or key == f"image-{task.job}"}
    return {
        **asdict(task),
        "gpus": ",".join(task.gpus),
        "cluster": asked.watch.cluster,
        "token": token,
        "grace": asked.watch.spec.grace,
        "agent": version(),
        "container": asked.containers.get(task.hostname, {}),
        "supplies": own,
    }
