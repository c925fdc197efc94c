"""Tasks as pods: created, updated, deleted and observed through the API server."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...agent.run_spec import RunSpec
from ...agent.run_state import UNKNOWN
from ...agent.transport.rpc import task_token
from ...errors import BackendError, SpecError, Unreachable
from ...spec.cluster import JOBS
from .. import controller_calls, lost_record
from ..base import (
    CONTROLLER,
    ClusterRef,
    EngineTask,
    ObservedMachines,
    Retain,
    RunOutputs,
    RunProps,
    TaskOutputs,
    TaskProps,
)
from ..container_runner import ContainerRunner, engine_reason
from ..record_copy import RecordCopy, RecordCopyBusy
from ..record_view import DELETE_UNREACHABLE, refuse_loss
from ..rolling_update import StartFailure, TaskHistory, Turns, replace_task, wait_for_finish, wait_for_start
from . import cleanup, nodes
from .api import ApiServer
from .cluster_objects import ClusterObjects
from .controller_client import PodController
from .labels import HASH_LABEL, object_name, prefix
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


class KubernetesTaskRunner(ContainerRunner):
    """The contract is `backends.base.TaskRunner`."""

    def __init__(self) -> None:
        self._turns: dict[str, Turns] = {}

    def controller(self, cluster: ClusterRef) -> PodController:
        """Calls of the controller."""
        return PodController(cluster)

    def engine_tasks(self, cluster: ClusterRef) -> Mapping[str, EngineTask]:
        """The state of each pod."""
        return _objects(cluster).tasks()

    def hostnames(self, cluster: ClusterRef) -> Sequence[str]:
        """The tasks with a Job, and the controller if it has its StatefulSet."""
        objects = _objects(cluster)
        return [*objects.jobs(), *(CONTROLLER for _ in objects.list("StatefulSet"))]

    def remove_tasks(self, cluster: ClusterRef, hostnames: Sequence[str], grace: float) -> None:
        """Remove the Jobs."""
        cleanup.remove_tasks(_objects(cluster), hostnames, stop_seconds(grace) + _STOP_MARGIN)

    def observe_machines(self, cluster: ClusterRef, is_preview: bool) -> ObservedMachines:
        """The nodes with a pod of the cluster."""
        try:
            return nodes.observe(_objects(cluster))
        except (BackendError, SpecError) as error:
            return ObservedMachines(others=UNKNOWN, problems=(str(error),))

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
        objects, controller = _objects(cluster), self.controller(cluster)
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
        objects, desired, controller = _objects(cluster), controller_set(props), self.controller(cluster)
        objects.apply_set(desired)
        name = f"the controller of {cluster['name']}"
        with engine_reason(lambda: objects.tasks().get(CONTROLLER)):
            wait_for_start(
                name,
                lambda: objects.runs_as_defined(desired),
                lambda: objects.tasks().get(CONTROLLER),
                CONTROLLER_SECONDS,
            )
            controller_calls.await_controller(controller, cluster["name"], CONTROLLER_SECONDS)
            yield controller

    def run_is_current(self, props: RunProps) -> bool:
        """Whether the controller exists and this is its run; if the API server is unreachable, assume both."""
        cluster = props["cluster"]
        try:
            if _objects(cluster).read("StatefulSet", object_name(cluster, CONTROLLER)) is None:
                return False
        except Unreachable:
            return True
        run = self.controller(cluster).current_run()
        return run is not None and run.spec.id == props["run"]["id"]

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        """Remove all objects with the cluster's label; retain the copy of the record, and the claim with checkpoints if requested."""
        record_copy = RecordCopy(cluster)
        try:
            self.end_run(cluster)
            if not record_copy.download(self.controller(cluster)):
                refuse_loss(cluster, record_copy)
            seconds = stop_seconds(self.grace(cluster)) + _STOP_MARGIN
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
