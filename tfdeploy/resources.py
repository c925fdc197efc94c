"""The three dynamic resources of a cluster. Thin and stateless: the backend's task runner does the work.

`Cleanup` is created first and deleted last, `Task` is one task, `Run` is what the tasks run. Pulumi's state names their
providers by the name of this module. What only an update needs is imported where it is used: a program registers resources, and Pulumi
creates them in another process.
"""

import hmac
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pulumi
from pulumi.dynamic import CheckResult, CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from . import identity, registry
from .backends.backend import load
from .backends.base import ClusterRef, Retain, RunOutputs, RunProps, TaskProps, TaskRunner
from .backends.stack_config import StackProvider, changed_inputs, plain_values
from .errors import DISK_FULL, BackendError, NotStarted, file_error
from .spec import environment
from .spec.arg_reader import ArgReader

if TYPE_CHECKING:
    from .backends.move_checks import MovedRunProps

Props = dict[str, Any]


def _runner(props: Mapping[str, Any]) -> TaskRunner:
    return load(props["cluster"]["backend"]).runner


@contextmanager
def _with_remedy(job: str = "") -> Iterator[None]:
    """Say what to do where a task of this job, or the controller, does not start, or a disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise BackendError(file_error(error)) from None
    except NotStarted as error:
        from .report.remedies import engine_remedy

        remedy = engine_remedy(str(error), job) or "Correct that, and run `pulumi up`."
        raise NotStarted(f"{str(error).rstrip('.')}. {remedy}") from None


_declared: dict[tuple[str, ...], bool] = {}
"""What the program of this update has, and whether it exists. The process of dynamic providers lives as long as the update."""


class NamedProvider(StackProvider):
    """A resource that is found by its name at its place. One that replaces it has the same name: the deletion of its predecessor must
    not delete it. Pulumi deletes predecessors at the end, also those that an earlier update has left in the state when it failed. So
    what the program of an update has is not deleted in this update."""

    is_deleted_first: ClassVar[bool] = False
    """Whether Pulumi deletes the predecessor before it creates the resource: that deletion counts."""

    def check(self, olds: Props, news: Props) -> CheckResult:
        """Pulumi calls this for each resource of a program. Without `olds` the resource is created next."""
        if olds:
            identity.refuse_other_format(olds["cluster"]["name"], olds)
        _declared[self.key(news)] = bool(olds) or not self.is_deleted_first
        return CheckResult(news, [])

    def is_predecessor(self, props: Props) -> bool:
        """Whether what is deleted is not the resource that the program has, but one that it has replaced.

        Raises:
            SpecError: another version has stored it.
        """
        identity.refuse_other_format(props["cluster"]["name"], props)
        return _declared.get(self.key(props), False)

    def key(self, props: Props) -> tuple[str, ...]:
        """The name of the resource, and its place."""
        cluster = props["cluster"]
        return type(self).__name__, cluster["id"], cluster["backend"], cluster["home"], props.get("hostname", "")


class CleanupProvider(NamedProvider):
    """Creates the cluster's token; deletes all that belongs to the cluster, even after an interrupted update."""

    def create(self, props: Props) -> CreateResult:
        """Create nothing but the token, so that an interruption leaves nothing behind."""
        return CreateResult(props["cluster"]["name"], {**props, "token": props.get("token") or secrets.token_hex(16)})

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """A cluster at another place is another cluster."""
        return changed_inputs(olds, news, ["cluster"])

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        """Stop the run and bring its record here, if machines are replaced next. Stop at once the tasks that are no longer listed:
        Pulumi deletes them only after the program has ended."""
        if news.get("replacement"):
            from .backends import move_record
            from .backends.base import Replacement

            replacement = Replacement.from_dict(plain_values(news["replacement"]))
            move_record.bring_home(news["cluster"], replacement)
        _runner(news).delete_unlisted(news["cluster"], olds["token"], news["hostnames"])
        return UpdateResult({**news, "token": olds["token"]})

    def delete(self, _id: str, props: Props) -> None:
        """Delete all that still exists. At another place than the state names nothing would be found: then it fails, and remains."""
        if self.is_predecessor(props):
            return
        machine_provider = load(props["cluster"]["backend"]).machine_provider
        if machine_provider:
            machine_provider.verify(cast(ClusterRef, props["cluster"]), props["place"]["id"])
        cluster = cast(ClusterRef, props["cluster"])
        retain = cast(Retain, {**props["retain"], "is_elsewhere": registry.is_elsewhere(cluster)})
        retained = _runner(props).delete_all(cluster, props["token"], retain)
        if retained:
            print(f"{props['cluster']['name']}: {retained}")
        registry.mark_destroyed(props["cluster"])
        entry = registry.stored(props["cluster"])
        if entry is None or entry.ended:  # else the run continues at another place
            from .backends import code_archives

            code_archives.delete(props["cluster"])


class TaskProvider(NamedProvider):
    """One task on the engine."""

    is_deleted_first = True

    def create(self, props: Props) -> CreateResult:
        """Create the task, or adopt the existing one."""
        plain = cast(TaskProps, plain_values(props))
        with _with_remedy():
            outputs = _runner(plain).create_task(plain)
        _declared[self.key(props)] = True
        return CreateResult(plain["hostname"], {**props, **outputs})

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """All but hostname and cluster can be updated in place. Its run is another resource."""
        return changed_inputs(olds, {**news, "run": None}, ["cluster", "hostname"])

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        """Update its limits."""
        plain = cast(TaskProps, plain_values(news))
        with _with_remedy(plain["job"]):
            return UpdateResult({**news, **_runner(plain).update_task(cast(TaskProps, plain_values(olds)), plain)})

    def read(self, id_: str, props: Props) -> ReadResult:
        """The task, or nothing where the engine no longer has it."""
        plain = cast(TaskProps, plain_values(props))
        return ReadResult(id_, props) if _runner(plain).task_exists(plain) else ReadResult(None, {})

    def delete(self, _id: str, props: Props) -> None:
        """Delete the task."""
        if self.is_predecessor(props):
            return
        plain = cast(TaskProps, plain_values(props))
        _runner(plain).delete_task({**plain, "is_replaced": self.key(props) in _declared})


class RunProvider(NamedProvider):
    """The run."""

    def create(self, props: Props) -> CreateResult:
        """Submit the run to the controller."""
        plain = _final(plain_values(props))
        return CreateResult(plain["run"]["id"], {**props, **_submit(plain)})

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """A new run is an update, never a replacement: the controller continues. One that moves is submitted in each update: another
        place may have a newer record of it again."""
        result = changed_inputs(olds, news, ["cluster"])
        result.changes = result.changes or "moved_from" in news
        return result

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        """Submit the new run to the controller."""
        plain = _final(plain_values(news))
        return UpdateResult({**news, **_submit(plain)})

    def read(self, id_: str, props: Props) -> ReadResult:
        """The run, or nothing where the controller is gone or has another run."""
        plain = _final(plain_values(props))
        return ReadResult(id_, props) if _runner(plain).run_is_current(plain) else ReadResult(None, {})

    def delete(self, _id: str, props: Props) -> None:
        """Stop the run."""
        if self.is_predecessor(props):
            return
        plain = cast(RunProps, plain_values(props))
        _runner(plain).stop_run(plain)


def _submit(props: RunProps) -> RunOutputs:
    """Submit a run, with its record where that is at another place."""
    with _with_remedy():
        if props.get("moved_from"):
            return _submit_moved(cast("MovedRunProps", props))
        return _runner(props).submit_run(props)


def _submit_moved(props: "MovedRunProps") -> RunOutputs:
    """Submit a run, with its record from another place."""
    from .backends import move_record

    for sentence in move_record.bring_here(props):
        print(f"{props['cluster']['name']}: {sentence}.")
    outputs = _runner(props).submit_run(props)
    registry.confirm_move(props["cluster"])
    return outputs


def _final(props: Any) -> RunProps:
    """The inputs of a run, with its final id: secret values of `env` count in it, so that a changed one is a new run. The id is an
    HMAC with the cluster's token as the key, because records and reports show it: without the token no value can be guessed from it.

    Raises:
        SpecError: a secret value that only the update knows is not valid.
    """
    run, values = props["run"], props["secrets"]
    names = sorted(run.get("secret_env", ()))
    variables = {name: values[name] for name in names}
    environment.plain_environment(ArgReader(props["cluster"]["name"], {"env": variables}), "env", {})
    others = {name: value for name, value in values.items() if name not in variables}
    environment.secrets(ArgReader(props["cluster"]["name"], {"secrets": others}))
    if not names:
        return cast(RunProps, props)
    text = json.dumps([run["id"], variables])
    digest = hmac.new(props["token"].encode(), text.encode(), "sha256").hexdigest()
    return cast(RunProps, {**props, "run": {**run, "id": digest[: len(run["id"])], "content_id": run["id"]}})


class Cleanup(Resource, module="tfdeploy", name="Cleanup"):
    """Created first, deleted last."""

    token: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        cluster: ClusterRef,
        place: Mapping[str, Any],
        hostnames: Sequence[str],
        retain: Retain,
        opts: pulumi.ResourceOptions,
        token: str = "",
        replacement: Mapping[str, Any] | None = None,
    ) -> None:
        """`token` is that of the cluster at its former place; empty for a new one. `replacement`: the run is brought to this computer,
        because machines are replaced."""
        props = identity.with_format(
            {
                "cluster": cluster,
                "place": dict(place),
                "hostnames": list(hostnames),
                "retain": dict(retain),
                "token": pulumi.Output.secret(token) if token else None,
                **({"replacement": replacement} if replacement else {}),
            }
        )
        secret = pulumi.ResourceOptions(additional_secret_outputs=["token"])
        super().__init__(CleanupProvider(), name, props, pulumi.ResourceOptions.merge(opts, secret))


class Task(Resource, module="tfdeploy", name="Task"):
    """One task of a cluster."""

    created_at: pulumi.Output[str]

    def __init__(self, name: str, props: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        first = pulumi.ResourceOptions(delete_before_replace=True)
        opts = pulumi.ResourceOptions.merge(opts, first)
        super().__init__(TaskProvider(), name, {**identity.with_format(props), "created_at": None}, opts)


class Run(Resource, module="tfdeploy", name="Run"):
    """The run of a cluster."""

    submitted_at: pulumi.Output[str]

    def __init__(self, name: str, props: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        outputs = {"submitted_at": None, "train_dir": None}
        super().__init__(RunProvider(), name, {**identity.with_format(props), **outputs}, opts)
