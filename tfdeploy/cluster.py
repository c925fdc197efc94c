"""The component `TensorFlowCluster`: spec → inventory → plan → rendered → resources → report."""

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pulumi
from pulumi.resource import DependencyResource

from . import registry, shipped_code
from .args import TensorFlowClusterArgs
from .awaited import awaited, has_outputs, is_undecided, unknown_output, with_unknown_outputs
from .backends.base import (
    Backend,
    ClusterDependencies,
    ClusterRef,
    DependencyRequest,
    Planner,
    Rendered,
    load,
)
from .backends.zipapp import version
from .config import environment_arguments, resolved, shown
from .errors import TfdeployError, file_error
from .identity import (
    Identity,
    choose_identity,
    cluster_to_adopt,
    others_of_same_name,
    place_of,
    refuse_other_name,
    refuse_other_place,
    refuse_second,
    register_identity,
    stored_cluster,
    stored_names,
)
from .outputs import ArtifactRow, CostSummary, MachineRow, TaskRow
from .paths import cluster_folder
from .plan import retained_data
from .plan.inventory import Inventory, PlaceRef
from .plan.plan import Plan, TaskPlan, make_plan, starts_new_run
from .report.expected import expected_state
from .report.live_display import CLUSTER_ROW, RUN_ROW, narrow_terminal_lines
from .resources import Cleanup, Run, Task
from .run_moves import Move, described, move_of
from .spec.cluster import ClusterSpec, cluster_spec
from .spec.environment import SecretText
from .spec.unknown import Unknown, unknowns, without_unused
from .stored_resources import register_stored

if TYPE_CHECKING:
    from .plan.code_bundle import Bundle
    from .report.report import Report

TYPE = "tfdeploy:index:TensorFlowCluster"

_LONG_AGO = "1970-01-01T00:00:00+00:00"
"""The time at which a run was submitted that is finished and has no machines left."""

_OUTPUTS = (
    "status",
    "tasks",
    "machines",
    "state",
    "run",
    "logs",
    "metrics",
    "endpoints",
    "train_dir",
    "artifacts",
    "cost",
)
"""The outputs that are registered. `observed_at` is not: it would show a difference in each update of a run that is over."""


class TensorFlowCluster(pulumi.ComponentResource):
    """A TensorFlow cluster: parameter servers and workers with each other's addresses, and the training that they run.

    `pulumi up` creates the cluster, waits for the end of the run for at most `wait`, and fails if the run fails; the outputs are
    recorded all the same. A further `up` does not train again, unless command, arguments, environment, code, data or `run_id`
    have changed. See `TensorFlowClusterArgs` for the arguments; pass them one by one or in `args`.

    Raises:
        pulumi.RunError: an argument is refused. Nothing has been created then.
    """

    status: pulumi.Output[str]
    """The machines and the tasks as two tables, and the state of the run."""

    tasks: pulumi.Output[list[TaskRow]]
    """The tasks."""

    machines: pulumi.Output[list[MachineRow]]
    """The machines."""

    state: pulumi.Output[str]
    """The state of the run: starting, running, succeeded, failed, stopped or unknown."""

    run: pulumi.Output[str]
    """The id of the run that the outputs are of, as in `tfdeploy status`. After an update that failed in a language other than Python
    the outputs are those of the update before it."""

    logs: pulumi.Output[dict[str, list[str]]]
    """The last `log_lines` lines of each task, by hostname."""

    metrics: pulumi.Output[dict[str, Any]]
    """The last match of each pattern of `metrics`: a number, or else a text; None while nothing matches."""

    endpoints: pulumi.Output[dict[str, str]]
    """The address of each task, by hostname: host:port."""

    train_dir: pulumi.Output[str]
    """The folder of the run in `train_dir`, as its tasks have it: a folder of their machine or container, or a URL."""

    artifacts: pulumi.Output[list[ArtifactRow]]
    """What was stored of `train_dir` when the run ended: models and the newest checkpoint, or what the argument `artifacts` names."""

    cost: pulumi.Output[CostSummary]
    """The cost of the machines on `ec2`; empty on `local` and `docker`."""

    observed_at: pulumi.Output[str]
    """When this was observed (UTC)."""

    def __init__(
        self,
        name: str,
        args: TensorFlowClusterArgs = {},  # noqa: B006
        opts: pulumi.ResourceOptions | None = None,
        **kwargs: Unpack[TensorFlowClusterArgs],
    ) -> None:
        arguments = {**args, **kwargs}
        with _errors_as_sentences(name):
            refuse_second(name)
            refuse_other_name(name, TYPE, (opts.aliases if opts else None) or ())
            declaration = None if has_outputs(arguments) else _declare(name, arguments, _providers(opts))
        super().__init__(TYPE, name, {}, opts)
        report = self._register(name, declaration).report if declaration else self._register_later(name, arguments)
        for output in (*_OUTPUTS, "observed_at"):
            setattr(self, output, report.apply(attrgetter(output)))
        self.register_outputs({output: getattr(self, output) for output in _OUTPUTS})

    def _register_later(self, name: str, args: Mapping[str, Any]) -> "pulumi.Output[Report]":
        """Register the resources of the cluster once its arguments are known; the report of it once they exist."""
        registration = asyncio.ensure_future(self._await_and_register(name, args))

        async def report() -> Any:
            return (await registration).report

        async def last() -> Any:
            return (await registration).last

        # What depends on the cluster waits for its children, and they are not registered yet.
        pending = DependencyResource("")
        pending.__dict__["urn"] = pulumi.Output.from_input(last())
        self._childResources.add(pending)
        result: pulumi.Output[Report] = pulumi.Output.from_input(report())
        return result

    async def _await_and_register(self, name: str, args: Mapping[str, Any]) -> "_Registration":
        try:
            inputs = await awaited(name, args)
        except TfdeployError as error:  # an OSError is one of the program's own `apply`
            raise pulumi.RunError(str(error)) from None
        with _errors_as_sentences(name):
            arguments = without_unused(resolved(name, inputs.args, pulumi.Config("tfdeploy")))
            if is_undecided(name, TYPE, arguments, partial(register_stored, name, TYPE, self)):
                return _Registration(unknown_output(), None)
            declaration = _declare(name, arguments, self._providers)
        return self._register(name, declaration, inputs.resources)

    def _register(
        self, name: str, declaration: "_Declaration", after: Sequence[pulumi.Resource] = ()
    ) -> "_Registration":
        """Register the resources of the cluster, after the resources `after`."""
        plan, spec = declaration.plan, declaration.spec
        if pulumi.runtime.is_dry_run():
            _print_preview(declaration)
        else:
            with _errors_as_sentences(name):
                registry.write_for_update(_entry(declaration))
                shipped_code.store(declaration.bundle, plan.run, declaration.inventory.run)
            _print_notices(declaration)
            for archive in _expired_archives(declaration):
                shutil.rmtree(archive, ignore_errors=True)
        identity = register_identity(name, declaration.identity, self)
        move = declaration.move
        cleanup = Cleanup(
            f"{move.prefix}-cleanup",
            declaration.cluster,
            declaration.place,
            [task.hostname for task in plan.tasks],
            {"volumes": spec.container.retain_volumes, "record": spec.ec2.retain_record},
            pulumi.ResourceOptions(parent=self, depends_on=[identity, *after]),
            move.token,
        )
        tasks = self._register_tasks(move.prefix, declaration, cleanup) if plan.needed_tasks else None

        async def observe(values: list[Any]) -> "Report":
            from .report.wait import Watch, observed  # the preview of a new cluster observes nothing

            watch = Watch(
                declaration.backend,
                declaration.cluster,
                spec,
                plan,
                token=values[0],
                begun=declaration.begun,
                rows={**tasks.rows, CLUSTER_ROW: self} if tasks else {},
                leaves=tuple(cluster["backend"] for cluster in move.clusters),
            )
            return await observed(watch, values[1])

        times = tasks.times if tasks else [_LONG_AGO]
        # The report is computed from the token, which is secret, but does not contain it.
        report: pulumi.Output[Report] = pulumi.Output.all(cleanup.token, *times).apply(observe)
        return _Registration(pulumi.Output.unsecret(report), tasks.run.urn if tasks else cleanup.urn)

    def _register_tasks(self, prefix: str, declaration: "_Declaration", cleanup: Cleanup) -> "_Tasks":
        """Register tasks, run, and what they need."""
        after_cleanup = pulumi.ResourceOptions(parent=self, depends_on=[cleanup])
        request = DependencyRequest(
            prefix,
            declaration.cluster,
            declaration.spec,
            declaration.plan,
            declaration.inventory,
            cleanup.token,
            declaration.secrets,
            after_cleanup,
        )
        dependencies = declaration.backend.planner.register_dependencies(request)
        tasks = [
            Task(
                f"{prefix}-{task.hostname}", _task_props(declaration, task, cleanup.token, dependencies), after_cleanup
            )
            for task in declaration.plan.needed_tasks
        ]
        run = Run(
            f"{prefix}-run",
            _run_props(declaration, cleanup.token, dependencies),
            pulumi.ResourceOptions(parent=self, depends_on=[cleanup, *tasks]),
        )
        rows = {plan.hostname: task for plan, task in zip(declaration.plan.needed_tasks, tasks, strict=True)}
        return _Tasks(run, [run.submitted_at, *(task.created_at for task in tasks)], {**rows, RUN_ROW: run})


@dataclass(frozen=True)
class _Tasks:
    """The resources of the tasks and of the run."""

    run: Run
    times: list[pulumi.Input[str]]
    """When the run was submitted, and when each task was created."""
    rows: dict[str, pulumi.Resource]
    """The rows of Pulumi's display that show the progress: of each task by its hostname, and of the run."""


@dataclass(frozen=True)
class _Registration:
    """The registered resources of a cluster."""

    report: "pulumi.Output[Report]"
    last: pulumi.Output[str] | None
    """The URN of the resource that depends on all others; None where nothing is registered."""


@contextmanager
def _errors_as_sentences(name: str) -> Iterator[None]:
    """A refused argument, or a file that cannot be read or written, ends the program without a traceback."""
    try:
        yield
    except TfdeployError as error:
        raise pulumi.RunError(str(error)) from None
    except OSError as error:
        raise pulumi.RunError(f"{name}: {file_error(error)}") from None


@dataclass(frozen=True)
class _Declaration:
    """One cluster of the program, with all that is known about it before anything is registered."""

    backend: Backend
    identity: Identity
    move: Move
    cluster: ClusterRef
    spec: ClusterSpec
    inventory: Inventory
    place: PlaceRef
    plan: Plan
    rendered: Rendered
    warnings: tuple[str, ...]
    bundle: "Bundle | None"
    code_without: tuple[Path, ...]
    """Files and folders that are not part of the code, although they are in its folder."""
    secrets: Mapping[str, pulumi.Input[str]]
    options: Mapping[str, str]
    """The arguments as the user gave them, without secrets."""
    unknown: tuple[Unknown, ...]
    """The arguments that this preview does not know."""
    begun: float


def _declare(name: str, args: Mapping[str, Any], providers: Mapping[str, pulumi.ProviderResource]) -> _Declaration:
    """Inspect, plan, validate and render a cluster, or refuse it."""
    begun = time.time()
    args = resolved(name, args, pulumi.Config("tfdeploy"))
    args.update(environment_arguments())
    spec = cluster_spec(name, args)
    backend = load(spec.backend)
    planner = backend.planner
    stored = stored_cluster(name, TYPE)
    identity = choose_identity(name, stored, spec.adopt)
    move = move_of(spec, stored, partial(stored_names, TYPE))
    spec = replace(spec, adopt=cluster_to_adopt(stored, spec.adopt, spec.backend))
    cluster = _cluster_ref(planner, identity, spec, providers)
    inventory = planner.inspect(cluster, spec, Path.cwd())
    refuse_other_place(cluster, stored, inventory)
    code_without = shipped_code.not_shipped(inventory)
    bundle = shipped_code.bundle(name, Path.cwd() / spec.code, code_without) if spec.code else None
    plan = make_plan(spec, inventory, bundle.name if bundle else "")
    move = described(move, spec, plan, inventory)
    without_record = (
        replace(spec, resume_from="") if move.origins else spec
    )  # the run to resume is in the record that moves
    warnings = planner.validate(cluster, without_record, plan, inventory, bundle.files if bundle else ())
    rendered = planner.render(cluster, spec, plan, inventory)
    return _Declaration(
        backend=backend,
        identity=identity,
        move=move,
        cluster=cluster,
        spec=spec,
        inventory=inventory,
        place=place_of(inventory),
        plan=plan,
        rendered=rendered,
        warnings=(
            *warnings,
            *plan.warnings,
            *shipped_code.output_warnings(bundle),
            *([] if stored else _others(backend, cluster)),
        ),
        bundle=bundle,
        code_without=code_without,
        secrets=_secret_values(spec, args),
        options={key: shown(key, value) for key, value in args.items()},
        unknown=unknowns(args),
        begun=begun,
    )


def _providers(opts: pulumi.ResourceOptions | None) -> Mapping[str, pulumi.ProviderResource]:
    """The explicit providers of a component by package, before it exists: those of its options, else of its parent."""
    if opts is None:
        return {}
    several = opts.providers or {}
    by_package = several if isinstance(several, Mapping) else {provider.package: provider for provider in several}
    single = {opts.provider.package: opts.provider} if opts.provider else {}
    return {**(opts.parent._providers if opts.parent else {}), **single, **by_package}


def _cluster_ref(
    planner: Planner, identity: Identity, spec: ClusterSpec, providers: Mapping[str, pulumi.ProviderResource]
) -> ClusterRef:
    cluster: ClusterRef = {
        "id": identity.id,
        "owner": identity.owner,
        "backend": spec.backend,
        "project": pulumi.get_project(),
        "stack": pulumi.get_stack(),
        "name": spec.name,
        "home": "",
    }
    return {**cluster, "home": planner.home(cluster_folder(cluster), spec, providers)}


def _others(backend: Backend, cluster: ClusterRef) -> list[str]:
    """Warnings about clusters that a reader could take for this one. Without the permission to list them, there are none."""
    with suppress(TfdeployError):
        return others_of_same_name(cluster, backend.discovery.discover(cluster["home"]))
    return []


def _print_preview(declaration: _Declaration) -> None:
    """The plan, and what it changes in what exists."""
    plan = declaration.plan
    code = f"; code: {declaration.bundle}" if declaration.bundle else ""
    skipped = [f"{name} is gone and is not created again: the run is finished" for name in sorted(plan.unneeded)]
    changes = [f"  {line}" for line in (*skipped, *plan.changes, *declaration.rendered.changes)]
    unused = ", ".join(f"`{group}`" for group in declaration.spec.unused_groups)
    not_used = [f"not used on {declaration.spec.backend}: {unused}"] if unused else []
    retained = _retention_lines(declaration)
    unknown = [f"`{item.what}` is known after the update" for item in declaration.unknown]
    notices = declaration.bundle.notices if declaration.bundle else ()
    progress = narrow_terminal_lines(declaration.spec, plan, declaration.inventory.run)
    details = [*declaration.move.lines, *not_used, *unknown, *plan.placement, *changes, *_forecast(declaration)]
    details += [*notices, *retained, *progress]
    pulumi.log.info("\n".join([f"{plan.summary}{code}", plan.success_rule, *details]))
    _print_warnings(declaration)


def _print_warnings(declaration: _Declaration) -> None:
    for text in declaration.warnings:
        pulumi.log.warn(f"{declaration.spec.name}: {text}.")


def _print_notices(declaration: _Declaration) -> None:
    """What an update without a preview reports too: the forecast, files that are not shipped, what `pulumi destroy` will keep and
    remove, and the warnings, among them that a cluster of the same project, stack and name exists."""
    _print_warnings(declaration)
    notices = declaration.bundle.notices if declaration.bundle else ()
    if lines := (*declaration.move.lines, *_forecast(declaration), *notices, *_retention_lines(declaration)):
        pulumi.log.info("\n".join([f"{declaration.spec.name}:", *lines]))


def _forecast(declaration: _Declaration) -> list[str]:
    if declaration.inventory.run is None or not starts_new_run(declaration.plan, declaration.inventory):
        return []
    from .run_forecast import forecast_lines  # not needed by most updates

    return forecast_lines(_entry(declaration), declaration.plan, declaration.inventory)


def _retention_lines(declaration: _Declaration) -> tuple[str, ...]:
    """What `pulumi destroy` will keep and remove, and what the update removes of earlier clusters."""
    expired = [f"  {archive}" for archive in _expired_archives(declaration)]
    title = ["older than `retention`, removed by this update:"] if expired else []
    return (*retained_data.lines(declaration.rendered.retained), *title, *expired)


def _expired_archives(declaration: _Declaration) -> list[Path]:
    retention, run = declaration.spec.retention, declaration.plan.run
    if not retention:
        return []
    in_use = (run.train_dir, run.data_dir, str(Path.cwd()))
    return registry.expired_archives(_entry(declaration), retention, declaration.begun, in_use)


def _entry(declaration: _Declaration) -> registry.Entry:
    """The cluster's entry in the registry, where the command finds it."""
    return registry.Entry(
        declaration.cluster,
        str(Path.cwd()),
        expected_state(declaration.plan, declaration.spec),
        declaration.options,
        registry.versions(),
        begun=declaration.begun,
        login=registry.login(),
        organization=pulumi.get_organization(),
    )


def _secret_values(spec: ClusterSpec, args: Mapping[str, Any]) -> dict[str, pulumi.Input[str]]:
    """The values of `secrets`, and the secret ones of `env`."""
    secret_env = {name: args["env"][name] for name in spec.secret_env}
    plain = {name: value.value if isinstance(value, SecretText) else value for name, value in secret_env.items()}
    return {**args.get("secrets", {}), **plain}


def _task_props(
    declaration: _Declaration, task: TaskPlan, token: pulumi.Output[str], dependencies: ClusterDependencies
) -> dict[str, Any]:
    """The inputs of a task: `backends.base.TaskProps`, with outputs among the values."""
    return {
        **asdict(task),
        "gpus": list(task.gpus),
        "cluster": declaration.cluster,
        "token": token,
        "grace": declaration.spec.stop_grace_period,
        "agent": version(),
        "container": with_unknown_outputs(declaration.rendered.tasks.get(task.hostname, {})),
        "dependencies": dependencies.of_job(task.job),
    }


def _run_props(
    declaration: _Declaration, token: pulumi.Output[str], dependencies: ClusterDependencies
) -> dict[str, Any]:
    """The inputs of the run: `backends.base.RunProps`, with outputs among the values."""
    bundle = declaration.bundle
    return {
        "cluster": declaration.cluster,
        "token": token,
        "run": with_unknown_outputs(declaration.plan.run.to_dict()),
        "code_folder": str(bundle.folder.absolute()) if bundle else "",
        "code_without": [str(path) for path in declaration.code_without],
        "secrets": pulumi.Output.secret(dict(declaration.secrets)),
        "container": with_unknown_outputs(declaration.rendered.controller),
        "dependencies": dependencies.of_job(declaration.spec.jobs[0].name),
        **({"moved_from": declaration.move.clusters} if declaration.move.origins else {}),
    }
