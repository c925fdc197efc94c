"""Tasks as pods: created, updated, deleted and observed through the API server."""

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...agent.record.record import ViewRequest
from ...agent.run_spec import RunSpec
from ...agent.run_state import UNKNOWN
from ...agent.transport.rpc import CallError, task_token
from ...errors import BackendError, SpecError, Unreachable
from ...spec.cluster import JOBS
from .. import controller_calls, lost_record
from ..base import (
    CONTROLLER,
    ClusterRef,
    EngineTask,
    ObservedMachines,
    ObservedState,
    Retain,
    RunOutputs,
    RunProps,
    TaskOutputs,
    TaskProps,
)
from ..move import StoppedRun, not_stopped
from ..record_copy import RecordCopy, RecordCopyBusy
from ..record_view import DELETE_UNREACHABLE, observed_view, refuse_loss
from ..rolling_update import StartFailure, TaskHistory, Turns, replace_task, wait_for_finish, wait_for_start
from . import cleanup, nodes
from .api import ApiServer
from .controller_client import PodController
from .labels import HASH_LABEL, object_name, prefix
from .objects import ClusterObjects
from .pods import controller_set, stop_seconds, task_job
from .resources import secret

CONTROLLER_SECONDS = 600.0
_STOP_MARGIN = 60.0


def _objects(cluster: ClusterRef) -> ClusterObjects:
    return ClusterObjects(ApiServer(cluster["home"]), cluster)


@dataclass(frozen=True)
class _Jobs:
    """The Jobs of one cluster: `rolling_update.TaskEngine`."""

    objects: ClusterObjects

    def apply(self, desired: Mapping[str, Any], ended: Collection[str] = ()) -> None:
        """Give a task this Job, when the pod of its former one is gone."""
        self.objects.apply_job(desired)

    def history(self, hostname: str) -> TaskHistory:
        """The pod of a task, and how often its launcher has failed in it."""
        task = self.objects.tasks().get(hostname)
        failures = [
            StartFailure(f"{pod['metadata']['uid']}-{container.get('restartCount', 0)}", task.reason if task else "")
            for pod in self.objects.pods().get(hostname, ())
            for container in pod["status"].get("containerStatuses") or ()
            if container.get("restartCount", 0) or (container.get("state", {}).get("waiting") or {}).get("message")
        ]
        return TaskHistory(task, failures)


class KubernetesTaskRunner:
    """The contract is `backends.base.TaskRunner`."""

    def __init__(self) -> None:
        self._turns: dict[str, Turns] = {}

    def create_task(self, props: TaskProps) -> TaskOutputs:
        """Create the task's Job, or adopt the existing one of its name."""
        objects = _objects(props["cluster"])
        self._create_token(objects, props)
        objects.apply_job(task_job(props))
        return {"created_at": controller_calls.now()}

    def _create_token(self, objects: ClusterObjects, props: TaskProps) -> None:
        token = {"token": task_token(props["token"], props["hostname"])}
        objects.apply(secret(props["cluster"], props["hostname"], token))

    def update_task(self, old: TaskProps, props: TaskProps) -> TaskOutputs:
        """Replace the Job: in a rolling update while a run is active, otherwise at once."""
        cluster, hostname = props["cluster"], props["hostname"]
        objects, controller = _objects(cluster), PodController(cluster)
        self._create_token(objects, props)
        desired = task_job(props)
        existing = objects.read("Job", desired["metadata"]["name"])
        is_unchanged = (
            existing and existing["metadata"]["labels"].get(HASH_LABEL) == desired["metadata"]["labels"][HASH_LABEL]
        )
        run = None if existing is None or is_unchanged else controller.current_run()
        if run is None or run.result is not None:
            wait_for_finish(run, hostname, controller.current_run)
            objects.apply_job(desired)
        else:
            replace = partial(replace_task, _Jobs(objects), desired, task_job(old), hostname, controller.current_run)
            turns = self._turns.setdefault(f"{cluster['home']} {prefix(cluster)}", Turns())
            turns.take((JOBS.index(props["job"]), props["index"]), hostname, replace)
        return {"created_at": controller_calls.now()}

    def task_exists(self, props: TaskProps) -> bool:
        """Whether the Job exists; if the API server is unreachable, assume that it does."""
        try:
            job = _objects(props["cluster"]).read("Job", object_name(props["cluster"], props["hostname"]))
        except Unreachable:
            return True
        return job is not None and "deletionTimestamp" not in job["metadata"]

    def delete_task(self, props: TaskProps) -> None:
        """Stop and remove the task; if the API server is unreachable, `delete_all` reports that."""
        with suppress(Unreachable):
            self._remove(props["cluster"], [props["hostname"]], props["grace"])

    def _remove(self, cluster: ClusterRef, hostnames: Sequence[str], grace: float) -> None:
        if hostnames:
            with suppress(OSError, CallError):
                PodController(cluster).json("POST", "/stop", {"hostnames": list(hostnames)})
            cleanup.remove_tasks(_objects(cluster), hostnames, stop_seconds(grace) + _STOP_MARGIN)

    def submit_run(self, props: RunProps) -> RunOutputs:
        """Create or update the controller, submit code and run, and start the launchers that have exited."""
        cluster = props["cluster"]
        objects = _objects(cluster)
        with self.responding_controller(props) as controller:
            if restored := lost_record.restore(controller, cluster, CONTROLLER_SECONDS):
                print(f"{cluster['name']}: {restored}.", flush=True)
            run = RunSpec.from_dict(props["run"])
            accepted = controller_calls.submit(controller, props, run, CONTROLLER_SECONDS)
        controller_calls.start_launchers(controller, accepted["at"], objects.start_ended)
        with suppress(RecordCopyBusy):  # the observation that follows reports it
            RecordCopy(cluster).update(controller)
        cleanup.remove_unused(objects, props["dependencies"])
        return {"submitted_at": controller_calls.now(), "train_dir": accepted["train_dir"]}

    @contextmanager
    def responding_controller(self, props: RunProps) -> Iterator[PodController]:
        """Create or update the controller, and wait until it responds. Errors meanwhile have Kubernetes' reason why it does not run."""
        cluster = props["cluster"]
        objects, desired, controller = _objects(cluster), controller_set(props), PodController(cluster)
        objects.apply_set(desired)
        name = f"the controller of {cluster['name']}"
        try:
            wait_for_start(
                name,
                lambda: objects.runs_as_defined(desired),
                lambda: objects.tasks().get(CONTROLLER),
                CONTROLLER_SECONDS,
            )
            controller_calls.await_controller(controller, cluster["name"], CONTROLLER_SECONDS)
            yield controller
        except BackendError as error:
            task = objects.tasks().get(CONTROLLER)
            reason = f" ({task.state}: {task.reason})" if task and task.reason else ""
            raise BackendError(f"{error}{reason}") from None

    def run_is_current(self, props: RunProps) -> bool:
        """Whether the controller exists and this is its run; if the API server is unreachable, assume both."""
        cluster = props["cluster"]
        try:
            if _objects(cluster).read("StatefulSet", object_name(cluster, CONTROLLER)) is None:
                return False
        except Unreachable:
            return True
        run = PodController(cluster).current_run()
        return run is not None and run.spec.id == props["run"]["id"]

    def stop_run(self, props: RunProps) -> None:
        """Stop the run, and wait until all tasks have stopped."""
        with suppress(Unreachable):
            self.end_run(props["cluster"])

    def end_run(self, cluster: ClusterRef, to_move: bool = False) -> bool:
        """Stop the run, or stop it `to_move` it; whether all its tasks have stopped. It waits for them."""
        objects = _objects(cluster)

        def has_ended() -> bool:
            return not any(task.alive for name, task in objects.tasks().items() if name != CONTROLLER)

        if objects.read("StatefulSet", object_name(cluster, CONTROLLER)) is None:
            return has_ended()
        seconds = self._grace(cluster) + _STOP_MARGIN
        return controller_calls.stop(PodController(cluster), has_ended, seconds, to_move) or has_ended()

    def _grace(self, cluster: ClusterRef) -> float:
        run = PodController(cluster).last_known_run()
        return float(run.spec.grace) if run else 0.0

    def stop_to_move(self, cluster: ClusterRef) -> StoppedRun:
        """Stop the run, and bring the copy of its record up to date."""
        record_copy, controller = RecordCopy(cluster), PodController(cluster)
        with suppress(Unreachable):
            if not self.end_run(cluster, to_move=True):
                raise not_stopped(cluster)
        is_whole = record_copy.download(controller)
        return StoppedRun(record_copy.folder, is_whole and controller.current_run() is not None)

    def mark_moved(self, cluster: ClusterRef, to: str) -> None:
        """Store it in the record."""
        controller_calls.mark_moved(PodController(cluster), to)

    def delete_unlisted(self, cluster: ClusterRef, token: str, hostnames: Sequence[str]) -> None:
        """Stop and remove the tasks that are not listed."""
        with suppress(Unreachable):
            unlisted = [name for name in _objects(cluster).jobs() if name not in hostnames]
            if unlisted:
                self._remove(cluster, unlisted, self._grace(cluster))

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        """Remove all objects with the cluster's label; retain the copy of the record, and the claim with checkpoints if requested."""
        record_copy = RecordCopy(cluster)
        try:
            self.end_run(cluster)
            if not record_copy.download(PodController(cluster)):
                refuse_loss(cluster, record_copy)
            seconds = stop_seconds(self._grace(cluster)) + _STOP_MARGIN
            kept = cleanup.remove_all(_objects(cluster), seconds, retain["volumes"])
        except (Unreachable, SpecError) as error:
            if os.environ.get(DELETE_UNREACHABLE) != "1":
                raise Unreachable(
                    f"{error}, so the objects of {cluster['name']} there cannot be removed. Restore the connection and run "
                    f"`pulumi destroy` again. If the Kubernetes cluster no longer exists, `{DELETE_UNREACHABLE}=1 pulumi destroy` "
                    "removes the cluster from the state only"
                ) from None
            kept = ""
        return "; ".join(filter(None, [record_copy.retire(), kept]))

    def observe(self, cluster: ClusterRef, token: str, query: ViewRequest, is_preview: bool = False) -> ObservedState:
        """Ask Kubernetes and the controller; read the copy of the record where the controller does not respond."""
        record_copy = RecordCopy(cluster)
        problems: list[str] = []
        engine: Mapping[str, EngineTask] | None = None
        machines = ObservedMachines(others=UNKNOWN)
        try:
            objects = _objects(cluster)
            engine = objects.tasks()
            machines = nodes.observe(objects)
        except (BackendError, SpecError) as error:
            problems.append(str(error))
        view, silent_since = observed_view(PodController(cluster), record_copy, engine, query, is_preview, problems)
        controller = (engine or {}).get(CONTROLLER)
        if controller is not None and controller.reason:
            problems.append(f"the controller is {controller.state}: {controller.reason}")
        tasks = {name: task for name, task in engine.items() if name != CONTROLLER} if engine is not None else None
        return ObservedState(
            at=time.time(),
            view=view,
            controller_silent_since=silent_since,
            engine=tasks,
            record_folder=str(record_copy.folder),
            machines=machines,
            problems=problems,
        )
