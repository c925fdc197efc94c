"""Registers the resources of a cluster with Pulumi, and observes the cluster once they exist."""

import asyncio
import shutil
import threading
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.resource import DependencyResource

from .. import registry
from ..agent.model.json_data import JsonData
from ..backends.backend import Backend
from ..backends.base import DependencyRequest, same_cluster
from ..backends.replacement_refusal import not_replaced
from ..backends.zipapp import version
from ..errors import TfdeployError, file_error
from ..identity import identity_name, refuse_other_name, refuse_second, register_identity
from ..plan.plan import TaskPlan
from ..resources import Cleanup, Run, Task
from ..spec.arg_reader import refuse_deep
from ..spec.unknown_values import without_unused
from . import shipped_code
from .announcements import print_notices, print_preview, refusal, report_installation
from .argument_outputs import awaited, has_outputs, is_undecided, unknown_output, with_unknown_outputs
from .config import overridden, resolved
from .declaration import Declaration, declare, expired_archives, registry_entry
from .stored_resources import register_stored

if TYPE_CHECKING:
    from ..report.report import Report

_LONG_AGO = "1970-01-01T00:00:00+00:00"
"""The time at which a run was submitted that is finished and has no machines left."""


@dataclass(frozen=True)
class Prepared:
    """A component that is about to be created, and the declaration of its cluster if all arguments are known."""

    component_type: str
    name: str
    arguments: Mapping[str, Any]
    declaration: Declaration | None


@dataclass(frozen=True)
class _Tasks:
    """The resources of the tasks and of the run."""

    run: Run
    times: list[pulumi.Input[str]]
    """When the run was submitted, and when each task was created."""
    rows: Mapping[str, pulumi.Resource]
    """The rows of Pulumi's display that show the progress of each task, by its hostname."""


@dataclass(frozen=True)
class _Registration:
    """The registered resources of a cluster."""

    report: "pulumi.Output[Report]"
    last: pulumi.Output[str] | None
    """The URN of the resource that depends on all others; None where nothing is registered."""


def refuse_misplaced(name: object, args: object, opts: object) -> None:
    """Refuse positional arguments of `TensorFlowCluster` that are in each other's place.

    Raises:
        pulumi.RunError: with the form that it takes.
    """
    form = 'TensorFlowCluster("NAME", command=["python", "train.py"], workers=2, opts=…)'
    wrong = ""
    if not isinstance(name, str):
        wrong = f"the first argument is the name, a string, and not {_kind(name)}"
    elif not isinstance(args, (Mapping, type(None))):
        wrong = f"{name}: the second argument is a mapping of arguments, and not {_kind(args)}"
    elif not isinstance(opts, (pulumi.ResourceOptions, type(None))):
        wrong = f"{name}: the third argument is pulumi.ResourceOptions, and not {_kind(opts)}"
    if wrong:
        raise refusal(f"TensorFlowCluster: {wrong}. Name the arguments: {form}.")


def _kind(value: object) -> str:
    return f"of type {type(value).__name__}"


def prepared(
    component_type: str, name: str, arguments: Mapping[str, Any], opts: pulumi.ResourceOptions | None
) -> Prepared:
    """Plan a cluster after its arguments are known, before its component is registered.

    Raises:
        pulumi.RunError: an argument is refused.
    """
    with _errors_as_sentences(name):
        refuse_deep(name, arguments)
        refuse_second(name)
        refuse_other_name(name, component_type, (opts.aliases if opts else None) or ())
        is_known = not has_outputs(arguments)
        declaration = declare(component_type, name, arguments, _providers(opts)) if is_known else None
    return Prepared(component_type, name, arguments, declaration)


def register(component: pulumi.ComponentResource, cluster: Prepared) -> "pulumi.Output[Report]":
    """Register the resources of the cluster, at once or when its arguments are known; the report of it once they exist."""
    report: pulumi.Output[Report]
    last: pulumi.Output[Any]
    if cluster.declaration:
        now = _register(component, cluster.name, cluster.declaration)
        report, last = now.report, pulumi.Output.from_input(now.last)
    else:
        later = asyncio.ensure_future(_await_and_register(component, cluster))
        report, last = pulumi.Output.from_input(_report_of(later)), pulumi.Output.from_input(_last_of(later))
    component._childResources.add(_Success(report, last))
    return report


async def _report_of(registration: Awaitable[_Registration]) -> Any:
    return (await registration).report


async def _last_of(registration: Awaitable[_Registration]) -> Any:
    return (await registration).last


class _Success(DependencyResource):
    """A child of the cluster for what depends on it: Pulumi awaits the URN of each child before it creates that."""

    def __init__(self, report: "pulumi.Output[Report]", last: pulumi.Output[Any]) -> None:
        super().__init__("")
        self._awaited = (report, last)

    @property
    def urn(self) -> pulumi.Output[str]:
        """The URN of the last resource of the cluster once its run has succeeded. It is computed only where something depends on it:
        an Output that fails ends the program."""

        def checked(values: Sequence[Any]) -> Any:
            report, last = values
            if report.withheld:
                raise pulumi.RunError(report.withheld)
            return last

        return pulumi.Output.all(*self._awaited).apply(checked)


async def _await_and_register(component: pulumi.ComponentResource, cluster: Prepared) -> _Registration:
    name, component_type = cluster.name, cluster.component_type
    try:
        inputs = await awaited(name, cluster.arguments)
    except TfdeployError as error:  # an OSError is one of the program's own `apply`
        raise refusal(str(error)) from None
    with _errors_as_sentences(name):
        config = pulumi.Config("tfdeploy")
        arguments = without_unused(resolved(name, inputs.args, config))
        for text in overridden(inputs.args, config):  # the declaration gets one value of each
            pulumi.log.warn(f"{name}: {text}.")
        stored = partial(register_stored, name, component_type, component)
        if is_undecided(name, component_type, arguments, stored):
            return _Registration(unknown_output(), None)
        declaration = declare(component_type, name, arguments, component._providers)
    return _register(component, name, declaration, inputs.resources)


def _register(
    component: pulumi.ComponentResource, name: str, declaration: Declaration, after: Sequence[pulumi.Resource] = ()
) -> _Registration:
    """Register the resources of the cluster, after the resources `after`."""
    plan, spec = declaration.plan, declaration.spec
    submitted = threading.Event()
    if pulumi.runtime.is_dry_run():
        print_preview(declaration)
    else:
        with _errors_as_sentences(name):
            registry.write_for_update(registry_entry(declaration))
            shipped_code.store(declaration.cluster, declaration.bundle, plan.run, declaration.inventory.run)
        print_notices(declaration)
        submitted = report_installation(declaration, component)
        for archive in expired_archives(declaration):
            shutil.rmtree(archive, ignore_errors=True)
    identity_opts, cleanup_opts = _kept(declaration)
    own = pulumi.ResourceOptions(parent=component)
    identity = register_identity(name, declaration.identity, pulumi.ResourceOptions.merge(own, identity_opts))
    move, replacement = declaration.move, declaration.rendered.replacement
    cleanup = Cleanup(
        f"{move.prefix}-cleanup",
        declaration.cluster,
        declaration.inventory.place,
        [task.hostname for task in plan.tasks],
        {"volumes": spec.container.retain_volumes, "record": spec.ec2.retain_record},
        pulumi.ResourceOptions.merge(
            cleanup_opts, pulumi.ResourceOptions(parent=component, depends_on=[identity, *after])
        ),
        move.token,
        replacement.to_dict() if replacement and replacement.machines else None,
    )
    tasks = _register_tasks(component, declaration, cleanup) if plan.needed_tasks else None
    if not pulumi.runtime.is_dry_run() or declaration.inventory.run is not None:
        # Pulumi compares or creates the resources in another process. What observes them takes long to load: it is loaded meanwhile.
        threading.Thread(target=_load_observation, args=(declaration.backend,), daemon=True).start()

    times = tasks.times if tasks else [_LONG_AGO]
    # The report is computed from the token, which is secret, but does not contain it.
    report: pulumi.Output[Report] = pulumi.Output.all(cleanup.token, *times).apply(
        partial(_observe, component, declaration, tasks, submitted)
    )
    return _Registration(pulumi.Output.unsecret(report), tasks.run.urn if tasks else cleanup.urn)


def _kept(declaration: Declaration) -> tuple[pulumi.ResourceOptions, pulumi.ResourceOptions]:
    """The options by which Pulumi does not replace the id and `Cleanup` of a cluster that the state of the stack has."""
    move, name = declaration.move, declaration.spec.name
    remedy = (
        "To train again, set another `run_id`; to create again what is gone, use `pulumi up --refresh`; to begin with another "
        "cluster, use `pulumi destroy` and then `pulumi up`."
    )
    is_here = move.here is not None and same_cluster(move.here.cluster, declaration.cluster)
    effect = f"would delete the cluster {declaration.identity.id} with its record"
    none = pulumi.ResourceOptions()
    return (
        not_replaced(identity_name(name), effect, remedy) if move.here or move.origins else none,
        not_replaced(f"{move.prefix}-cleanup", effect, remedy) if is_here else none,
    )


def _load_observation(backend: Backend) -> None:
    """Load what `_observe` needs. What fails, fails there again, where the error is reported."""
    with suppress(Exception):
        from ..report import update_wait  # noqa: F401

        _ = backend.runner


async def _observe(
    component: pulumi.ComponentResource,
    declaration: Declaration,
    tasks: _Tasks | None,
    submitted: threading.Event,
    values: Sequence[Any],
) -> "Report":
    """The report of a cluster that exists; `values` are its token and when the run was `submitted`, which this sets."""
    submitted.set()
    from ..report.update_wait import CLUSTER_ROW, RUN_ROW, Watch, observed

    watch = Watch(
        declaration.backend,
        declaration.cluster,
        declaration.spec,
        declaration.plan,
        token=values[0],
        begun=declaration.begun,
        rows={**tasks.rows, RUN_ROW: tasks.run, CLUSTER_ROW: component} if tasks else {},
        way_back=_way_back(declaration),
    )
    return await observed(watch, values[1])


def _way_back(declaration: Declaration) -> str:
    """What to do where a run that moves does not train at its new place; empty where none moves."""
    if declaration.move.origins:
        origins = [cluster["backend"] for cluster in declaration.move.clusters]
        back = f"pulumi config set tfdeploy:backend {origins[0]} && pulumi up"
        return f"What is on {' and '.join(origins)} is not deleted. To return: {back}"
    if declaration.rendered.replacement:
        return (
            "To return, undo the change of the machines and run `pulumi up`: the run continues from its newest checkpoint. After a "
            f"failure this needs another `run_id`, and resume_from={declaration.plan.run.id!r}"
        )
    return ""


def _register_tasks(component: pulumi.ComponentResource, declaration: Declaration, cleanup: Cleanup) -> _Tasks:
    """Register tasks, run, and what they need."""
    prefix = declaration.move.prefix
    after_cleanup = pulumi.ResourceOptions(parent=component, depends_on=[cleanup])
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
        Task(f"{prefix}-{task.hostname}", _task_props(declaration, task, cleanup.token, dependencies), after_cleanup)
        for task in declaration.plan.needed_tasks
    ]
    run = Run(
        f"{prefix}-run",
        _run_props(declaration, cleanup.token, dependencies),
        pulumi.ResourceOptions(parent=component, depends_on=[cleanup, *tasks]),
    )
    rows = {plan.hostname: task for plan, task in zip(declaration.plan.needed_tasks, tasks, strict=True)}
    return _Tasks(run, [run.submitted_at, *(task.created_at for task in tasks)], rows)


def _providers(opts: pulumi.ResourceOptions | None) -> Mapping[str, pulumi.ProviderResource]:
    """The explicit providers of a component by package, before it exists: those of its options, else of its parent."""
    if opts is None:
        return {}
    several = opts.providers or {}
    by_package = several if isinstance(several, Mapping) else {provider.package: provider for provider in several}
    single = {opts.provider.package: opts.provider} if opts.provider else {}
    return {**(opts.parent._providers if opts.parent else {}), **single, **by_package}


@contextmanager
def _errors_as_sentences(name: str) -> Iterator[None]:
    """A refused argument, or a file that cannot be read or written, ends the program without a traceback."""
    try:
        yield
    except TfdeployError as error:
        raise refusal(str(error)) from None
    except OSError as error:
        raise refusal(f"{name}: {file_error(error)}") from None


def _task_props(
    declaration: Declaration, task: TaskPlan, token: pulumi.Output[str], dependencies: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The inputs of a task: `backends.base.TaskProps`, with outputs among the values."""
    return {
        **task.to_dict(),
        "cluster": declaration.cluster,
        "token": token,
        "grace": declaration.spec.stop_grace_period,
        "agent": version(),
        "run": with_unknown_outputs(declaration.plan.run.id),
        "container": _container(declaration.rendered.tasks.get(task.hostname)),
        "dependencies": dependencies.get(task.job, {}),
    }


def _container(settings: JsonData | None) -> Any:
    """`TaskProps.container` or `RunProps.container`."""
    return with_unknown_outputs(settings.to_dict() if settings else {})


def _run_props(
    declaration: Declaration, token: pulumi.Output[str], dependencies: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The inputs of the run: `backends.base.RunProps`, or `backends.move_checks.MovedRunProps`, with outputs among the values."""
    bundle, move = declaration.bundle, declaration.move
    moves = move.origins or declaration.rendered.replacement
    return {
        "cluster": declaration.cluster,
        "token": token,
        "run": with_unknown_outputs(declaration.plan.run.to_inputs()),
        "code_folder": str(bundle.folder.absolute()) if bundle else "",
        "code_without": [str(path) for path in declaration.code_without],
        "secrets": pulumi.Output.secret(dict(declaration.secrets)),
        "container": _container(declaration.rendered.controller),
        "dependencies": dependencies.get(declaration.spec.jobs[0].name, {}),
        **({"moved_from": move.clusters, "returns": move.returns} if moves else {}),
    }
