"""The planner of a cluster in Kubernetes: what its pods are, and what that changes in existing Jobs. Nothing here writes."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...errors import SpecError
from ...paths import absolute
from ...plan.inventory import Inventory, PlaceRef
from ...plan.plan import Change, Plan, TaskPlan, grouped, updates
from ...plan.retained_data import RetainedData
from ...spec.cluster import ClusterSpec
from ...spec.jobs import JobSpec
from ...spec.unknown_values import is_known
from ..base import CONTROLLER, ClusterRef, DependencyRequest, Rendered, RunProps, TaskProps
from ..container_layout import TRAIN_FOLDER
from ..image_content import named_image, named_image_content
from ..record_copy import RecordCopy, record_archive
from . import validate
from .affinity import placement
from .api import ApiServer
from .cluster_objects import ClusterObjects
from .controller_client import PodController
from .labels import AGENT, ID_LABEL, JOB_LABEL, RECORD, SETTINGS, TOKEN, TRAIN, object_name
from .namespace import chosen_place
from .pods import PodSettings, controller_set, covers, is_folder, mounts, pod_of, shown_settings, task_job

if TYPE_CHECKING:
    import pulumi

RESTARTS = "restarts, one task at a time"
RECORD_SIZE, TRAIN_SIZE = "10Gi", "50Gi"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, kw_only=True)
class KubernetesInventory(Inventory):
    """What exists in the namespace."""

    jobs: Mapping[str, Mapping[str, Any]]
    """The Jobs by hostname."""
    has_storage: bool
    """Whether a claim without a class gets storage; so is assumed where that may not be read."""


class KubernetesPlanner:
    """The contract is `backends.base.Planner`."""

    def home(self, folder: str, spec: ClusterSpec, providers: "Mapping[str, pulumi.ProviderResource]") -> str:
        """A cluster's home is the namespace and the API server of the context."""
        kubernetes = spec.kubernetes
        return chosen_place(kubernetes.context, kubernetes.namespace, kubernetes.kubeconfig).home

    def inspect(self, cluster: ClusterRef, spec: ClusterSpec, program_folder: Path) -> KubernetesInventory:
        """The namespace. Kubernetes places tasks, so there are no machines."""
        api = ApiServer(cluster["home"])
        jobs = ClusterObjects(api, cluster).jobs() if cluster["id"] else {}
        if not spec.command:
            wrong = "is missing, and the entry point of an image is not known on this backend"
            raise SpecError(f"{spec.name}: command", wrong, "Set the command.")
        return KubernetesInventory(
            machines=(),
            places_tasks=True,
            train_dir=absolute(spec.train_dir, str(program_folder)) or TRAIN_FOLDER,
            data_dir=absolute(spec.data_dir, str(program_folder)),
            image=named_image_content(spec),
            task_machines=dict.fromkeys(jobs, ""),
            run=PodController(cluster).last_known_run() if jobs else RecordCopy(cluster).record.current(),
            results=RecordCopy(cluster).record.results(),
            place=place_of(api),
            jobs=jobs,
            has_storage=bool(spec.kubernetes.storage_class) or _has_default_class(api),
        )

    def validate(
        self,
        cluster: ClusterRef,
        spec: ClusterSpec,
        plan: Plan,
        inventory: KubernetesInventory,
        code_files: Sequence[str],
    ) -> Sequence[str]:
        """Refuse what cannot work; the warnings."""
        api = ApiServer(cluster["home"])
        validate.refuse(api, spec, code_files)
        pods = new_pods(cluster, spec, plan, self.render(cluster, spec, plan, inventory), inventory.jobs)
        warnings = validate.warnings(api, spec, plan, inventory.jobs, pods)
        return [*warnings, *_storage_warnings(cluster, spec, inventory)]

    def render(self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: KubernetesInventory) -> Rendered:
        """What the pods of tasks and controller have beyond what every task has, and which Jobs change."""
        jobs = {job.name: _settings(cluster, spec, plan, job) for job in spec.jobs}
        tasks = {task.hostname: jobs[task.job] for task in plan.tasks}
        return Rendered(
            tasks=tasks,
            controller=_controller_settings(cluster, spec, plan, jobs, inventory),
            changes=pod_changes(plan.tasks, tasks, inventory.jobs),
            retained=_retained(cluster, spec, plan),
        )

    def register_dependencies(self, request: DependencyRequest[KubernetesInventory]) -> Mapping[str, Mapping[str, Any]]:
        """Names, Secrets, the agent, claims and network policies."""
        from .resources import PodObjects, claim

        cluster, spec = request.cluster, request.spec
        storage = spec.kubernetes.storage_class
        claims = []
        if request.inventory.has_storage:
            claims.append(claim(cluster, RECORD, RECORD_SIZE, "ReadWriteOnce", storage))
        if _train_claim(cluster, spec):
            claims.append(claim(cluster, TRAIN, TRAIN_SIZE, "ReadWriteMany", storage))
        objects = PodObjects(
            f"{request.name}-objects",
            cluster,
            request.token,
            request.secrets,
            claims,
            spec.kubernetes.kubeconfig,
            request.opts,
        )
        shared = {
            "agent": objects.agent,
            "token": object_name(cluster, TOKEN),
            **({"secrets": objects.secrets_name} if request.secrets else {}),
        }
        return {job.name: shared for job in spec.jobs}


def place_of(api: ApiServer) -> PlaceRef:
    """The id of a place is that of the namespace, which every user of a cluster may read. Without it, `validate` refuses the plan."""
    namespace = validate.readable(api, f"/api/v1/namespaces/{api.namespace}") or {}
    return PlaceRef(id=namespace.get("metadata", {}).get("uid", ""), name=f"{api.server} {api.namespace}")


def new_pods(
    cluster: ClusterRef, spec: ClusterSpec, plan: Plan, rendered: Rendered, existing: Collection[str]
) -> Mapping[str, Mapping[str, Any]]:
    """The pod of the first new task of each job, and that of the controller of a new cluster, as far as a preview knows them."""
    dependencies = {"agent": object_name(cluster, AGENT), "token": object_name(cluster, TOKEN)}
    common = {"cluster": cluster, "dependencies": dependencies, "grace": spec.stop_grace_period}
    owners = {}
    if not existing and rendered.controller:
        owners[CONTROLLER] = controller_set(cast(RunProps, {**common, "container": rendered.controller.to_dict()}))
    for task in {task.job: task for task in reversed(plan.needed_tasks) if task.hostname not in existing}.values():
        container = rendered.tasks[task.hostname].to_dict()
        owners[task.hostname] = task_job(cast(TaskProps, {**common, **task.to_dict(), "container": container}))
    return {hostname: pod_of(owner) for hostname, owner in owners.items() if is_known(owner["spec"])}


def _has_default_class(api: ApiServer) -> bool:
    classes = (validate.readable(api, "/apis/storage.k8s.io/v1/storageclasses") or {}).get("items")
    return classes is None or any(
        (item["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true" for item in classes
    )


def _storage_warnings(cluster: ClusterRef, spec: ClusterSpec, inventory: KubernetesInventory) -> list[str]:
    warnings = []
    if not inventory.has_storage:
        warnings.append(
            "no storage class is the default: the record is lost with the controller's pod, and then restored from the copy on the "
            "computer of the next update. Set kubernetes.storage_class"
        )
    if not spec.train_dir and not _train_claim(cluster, spec):
        warnings.append(
            "train_dir is not set, so checkpoints are lost with the pod of their task, except copies in the record. Set train_dir to a "
            "URL or a folder of a shared volume, or set kubernetes.storage_class to a class with ReadWriteMany"
        )
    return warnings


def _train_claim(cluster: ClusterRef, spec: ClusterSpec) -> str:
    """The claim with the checkpoints; empty where each task has a folder of its own, which lives as long as its pod."""
    return object_name(cluster, TRAIN) if spec.kubernetes.storage_class and not spec.train_dir else ""


def _settings(cluster: ClusterRef, spec: ClusterSpec, plan: Plan, job: JobSpec) -> PodSettings:
    pod = job.kubernetes
    selector = {ID_LABEL: cluster["id"], JOB_LABEL: job.name}
    return PodSettings(
        image=named_image(spec, job),
        user=job.container.user,
        mounts=mounts(spec, plan, job.container.volumes, _train_claim(cluster, spec)),
        shm_size=job.container.shm_size,
        labels=dict(pod.labels),
        annotations=dict(pod.annotations),
        pod={**_pod_members(spec, pod), **placement(spec, job, selector)},
        queue=spec.kubernetes.queue,
    )


def _pod_members(spec: ClusterSpec, pod: Any) -> dict[str, Any]:
    """What the group `kubernetes` says of a pod."""
    tolerations = [{key: value for key, value in vars(toleration).items() if value} for toleration in pod.tolerations]
    kubernetes = spec.kubernetes
    members = {
        "nodeSelector": dict(pod.node_selector),
        "tolerations": tolerations,
        "priorityClassName": pod.priority_class,
        "serviceAccountName": kubernetes.service_account,
        "imagePullSecrets": [{"name": name} for name in kubernetes.image_pull_secrets],
    }
    return {key: value for key, value in members.items() if value}


def _controller_settings(
    cluster: ClusterRef,
    spec: ClusterSpec,
    plan: Plan,
    jobs: Mapping[str, PodSettings],
    inventory: KubernetesInventory,
) -> PodSettings:
    """The controller has the image and the user of the first job, and of its volumes those with `train_dir`, where it creates the
    run's folder."""
    first, pod = jobs[spec.jobs[0].name], spec.kubernetes
    train_dir = plan.run.train_dir
    needed = tuple(item for item in first.mounts if is_folder(train_dir) and covers([item], train_dir) and item.source)
    return PodSettings(
        image=first.image,
        user=first.user,
        mounts=needed,
        labels=dict(pod.labels),
        annotations=dict(pod.annotations),
        pod=_pod_members(spec, pod),
        record=object_name(cluster, RECORD) if inventory.has_storage else "",
    )


def _retained(cluster: ClusterRef, spec: ClusterSpec, plan: Plan) -> tuple[RetainedData, ...]:
    keeps, train_dir = spec.container.retain_volumes, plan.run.train_dir
    if spec.train_dir:
        checkpoints = RetainedData("checkpoints", str(train_dir), True)
    elif name := _train_claim(cluster, spec):
        title = name if cluster["id"] else "of the cluster"
        checkpoints = RetainedData("checkpoints", f"claim {title} in the namespace", keeps)
    else:
        checkpoints = RetainedData("checkpoints", f"{train_dir} in the pod of each task", False)
    return (RetainedData("record", record_archive(cluster), True), checkpoints)


def pod_changes(
    planned: Sequence[TaskPlan], pods: Mapping[str, PodSettings], jobs: Mapping[str, Mapping[str, Any]]
) -> tuple[Change, ...]:
    """The changes of existing Jobs."""
    changes: list[Change] = []
    for task in planned:
        if task.hostname in jobs:
            before = json.loads((jobs[task.hostname]["metadata"].get("annotations") or {}).get(SETTINGS, "{}"))
            after = shown_settings(pods[task.hostname], task.limits)
            settings = {name: (before.get(name, ""), after.get(name, "")) for name in {**before, **after}}
            changes += updates(task.hostname, settings, RESTARTS)
    return grouped(changes)
