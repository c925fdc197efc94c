"""Checks of a plan against the Kubernetes cluster: errors for what cannot work, and warnings. They only read."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...errors import SpecError, nearest
from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec
from ...spec.docker import HOST
from ...spec.jobs import JobSpec
from ...spec.kubernetes import Toleration
from ...spec.unknown_values import is_known
from ...units import named, quantity, text_of_size
from ..base import FAIL
from ..validate import refuse_requirements, refuse_script
from .api import FORBIDDEN, INVALID, NOT_FOUND, ApiError, ApiServer
from .discover import check_version
from .labels import ID_LABEL
from .permissions import NEEDED_ROLE, TRY_PODS, missing, refusal
from .pods import GPU

Json = Mapping[str, Any]

_POD_SECURITY, _EXCEEDED = "violates PodSecurity", "exceeded quota"
"""Words of the API server's messages."""

_STOPS = ("NoSchedule", "NoExecute")
_SHOWN = 3


def refuse(api: ApiServer, spec: ClusterSpec, code_files: Sequence[str]) -> None:
    """Refuse what cannot work.

    Raises:
        SpecError: with the argument, what is wrong with it, and a remedy.
        Unreachable: the server does not respond.
    """
    refuse_script(spec, code_files)
    refuse_requirements(spec)
    _refuse_arguments(spec)
    if (version := check_version(api)).state == FAIL:
        raise SpecError(f"{spec.name}: backend", version.detail, version.remedy)
    _refuse_namespace(api, spec)
    if permissions := missing(api):
        raise SpecError(f"{spec.name}: kubernetes", refusal(api, permissions), NEEDED_ROLE)
    _refuse_missing_objects(api, spec)


def warnings(
    api: ApiServer, spec: ClusterSpec, plan: Plan, existing: Collection[str], pods: Mapping[str, Json]
) -> list[str]:
    """What may keep tasks from starting. `existing` has the hostnames of the tasks that exist; `pods` are those by hostname of which
    the API server is asked whether it would create them.

    Raises:
        SpecError: the Pod Security of the namespace forbids a pod, which does not change by itself.
    """
    jobs = {job.name: job for job in spec.jobs}
    tasks = [(task.hostname, jobs[task.job]) for task in plan.needed_tasks if task.hostname not in existing]
    quotas = _quota_warnings(api, spec, tasks, not existing)
    refused = [text for text in _refused_pods(api, spec, pods) if not (quotas and _EXCEEDED in text)]
    return [*quotas, *refused, *_node_warnings(api, tasks)]


def _refuse_arguments(spec: ClusterSpec) -> None:
    """Refuse what containers can have elsewhere, but not on Kubernetes."""
    if spec.container.network == HOST:
        wrong = "pods of Kubernetes have addresses and names in its own network"
        raise SpecError(f"{spec.name}: container.network", wrong, "Remove it.")
    if spec.container.subnet:
        wrong = "the Kubernetes cluster assigns the addresses"
        raise SpecError(f"{spec.name}: container.subnet", wrong, "Remove it.")
    if spec.container.build or spec.requirements:
        name = "container.build" if spec.container.build else "requirements"
        remedy = "Build and push an image that has them, and name it by container.image."
        raise SpecError(f"{spec.name}: {name}", "no image is built for Kubernetes", remedy)
    for job in spec.jobs:
        parts = job.container.user.split(":")
        if job.container.user and not all(part.isdigit() for part in parts):
            wrong = f"Kubernetes takes no names of users, and {job.container.user!r} has one"
            raise SpecError(f"{spec.name}: container.user", wrong, 'Use numbers, such as "1000:1000".')


def _refuse_namespace(api: ApiServer, spec: ClusterSpec) -> None:
    namespace = readable(api, f"/api/v1/namespaces/{api.namespace}")
    where = f"{spec.name}: kubernetes.namespace"
    if namespace is None:
        remedy = f"Create it: kubectl create namespace {api.namespace}; or use another one."
        raise SpecError(where, f"{api.server} has no namespace {api.namespace!r}", remedy)
    if namespace.get("metadata", {}).get("deletionTimestamp"):
        raise SpecError(where, f"the namespace {api.namespace!r} is being deleted", "Use another one.")


def _refused_pods(api: ApiServer, spec: ClusterSpec, pods: Mapping[str, Json]) -> list[str]:
    """Why the API server would not create these pods, in its words: a quota, a LimitRange, a policy. That may change later."""
    refused: list[str] = []
    for hostname, pod in pods.items() if not missing(api, TRY_PODS) else ():
        try:
            api.post(f"/api/v1/namespaces/{api.namespace}/pods?dryRun=All", pod)
        except ApiError as error:
            if _POD_SECURITY in str(error):
                remedy = 'Set container.user to numbers other than 0, such as "1000:1000", and use claims, no folders of nodes.'
                raise SpecError(f"{spec.name}: container", str(error), remedy) from None
            if error.status in (FORBIDDEN, INVALID):
                refused.append(f"Kubernetes would not create the pod of {hostname} now: {error}")
    return refused


def _refuse_missing_objects(api: ApiServer, spec: ClusterSpec) -> None:
    """Refuse names of objects that do not exist. What the user may not read is not checked."""
    own = spec.kubernetes
    in_namespace = f"/namespaces/{api.namespace}"
    classes = [own.priority_class, *(job.kubernetes.priority_class for job in spec.jobs)]
    sources = [text.partition(":")[0] for job in spec.jobs for text in job.container.volumes]
    claims = [source for source in sources if not source.startswith("/")]
    named = (
        ("container.volumes", f"/api/v1{in_namespace}/persistentvolumeclaims", claims),
        ("kubernetes.storage_class", "/apis/storage.k8s.io/v1/storageclasses", [own.storage_class]),
        ("kubernetes.priority_class", "/apis/scheduling.k8s.io/v1/priorityclasses", classes),
        ("kubernetes.service_account", f"/api/v1{in_namespace}/serviceaccounts", [own.service_account]),
        ("kubernetes.image_pull_secrets", f"/api/v1{in_namespace}/secrets", own.image_pull_secrets),
        ("kubernetes.queue", f"/apis/kueue.x-k8s.io/v1beta1{in_namespace}/localqueues", [own.queue]),
    )
    for argument, path, names in named:
        for name in dict.fromkeys(filter(None, names)):
            if is_known(name) and readable(api, f"{path}/{name}") is None:
                wrong = f"{name!r} does not exist {f'in {api.namespace}' if in_namespace in path else 'there'}"
                existing = _names(api, path)
                remedy = nearest(name, existing) if existing else "Create it, or remove the argument."
                raise SpecError(f"{spec.name}: {argument}", wrong, remedy)


def _names(api: ApiServer, path: str) -> list[str]:
    """The objects of a kind that no cluster of tfdeploy has created."""
    try:
        metas = [item["metadata"] for item in api.get(path)["items"]]
    except ApiError:
        return []
    return [meta["name"] for meta in metas if ID_LABEL not in (meta.get("labels") or {})]


def readable(api: ApiServer, path: str) -> Json | None:
    """What is there; None where nothing is, and nothing in particular where it may not be read."""
    try:
        return api.get(path)
    except ApiError as error:
        if error.status == NOT_FOUND:
            return None
        if error.status == FORBIDDEN:
            return {}
        raise


def _quota_warnings(api: ApiServer, spec: ClusterSpec, tasks: Sequence[tuple[str, JobSpec]], is_new: bool) -> list[str]:
    """What the new tasks need more than a quota of the namespace has left, with the controller of a new cluster. They wait until
    others end."""
    quotas = (readable(api, f"/api/v1/namespaces/{api.namespace}/resourcequotas") or {}).get("items", ())
    totals = _totals([job for _, job in tasks], int(is_new))
    warnings = []
    for quota in quotas:
        status = quota.get("status", {})
        used = status.get("used", {})
        short = [
            f"{name} {_text(name, totals[name])} of {_text(name, quantity(hard) - quantity(used.get(name, '0')))} left"
            for name, hard in status.get("hard", {}).items()
            if totals.get(name, 0) > quantity(hard) - quantity(used.get(name, "0"))
        ]
        if short:
            name = quota["metadata"]["name"]
            warnings.append(f"the quota {name} of {api.namespace} is too small for {spec.name}: {', '.join(short)}")
    return warnings


def _totals(jobs: Sequence[JobSpec], controllers: int) -> dict[str, float]:
    """What quotas count of these tasks and of controllers; see objects of ResourceQuota."""
    sizes = [_sizes(job) for job in jobs]
    by_name = {name: sum(size[name] for size in sizes) for name in ("cpu", "memory", GPU)}
    totals = {f"{kind}.{name}": total for name, total in by_name.items() for kind in ("requests", "limits")}
    pods = dict.fromkeys(("pods", "count/pods"), float(len(jobs) + controllers))
    return {**by_name, **totals, **pods, "count/jobs.batch": float(len(jobs))}


def _sizes(job: JobSpec) -> dict[str, float]:
    """What one task requests, and its limits; 0 for what it does not name."""
    return {"cpu": job.cpus, "memory": float(job.memory), GPU: float(job.gpus)}


def _text(name: str, number: float) -> str:
    return text_of_size(max(0.0, number)) if name.endswith("memory") else f"{max(0.0, number):g}"


def _unmet(job: JobSpec, nodes: Sequence[Json]) -> str:
    """What no node has for a job; empty where one has all of it."""

    def allocatable(node: Json, name: str) -> float:
        return quantity(node["status"].get("allocatable", {}).get(name, "0"))

    labels = job.kubernetes.node_selector
    nodes = [node for node in nodes if labels.items() <= node["metadata"].get("labels", {}).items()]
    if not nodes:
        return f"the labels {dict(labels)}"
    nodes = [node for node in nodes if not _stopping(node, job)]
    if not nodes:
        return "no taint that it does not tolerate"
    sizes = {GPU: f"{job.gpus} {GPU}", "cpu": f"{job.cpus:g} CPUs", "memory": text_of_size(job.memory)}
    for name, text in sizes.items():
        nodes = [node for node in nodes if allocatable(node, name) >= _sizes(job)[name]]
        if not nodes:
            return text
    return ""


def _node_warnings(api: ApiServer, tasks: Sequence[tuple[str, JobSpec]]) -> list[str]:
    """The tasks that no node could take, even without others. They wait, unless something adds nodes."""
    nodes = (readable(api, "/api/v1/nodes") or {}).get("items", ())
    firsts = {job.name: (hostname, job) for hostname, job in reversed(tasks)}
    warnings = []
    for hostname, job in firsts.values() if nodes else ():
        if unmet := _unmet(job, nodes):
            names = named([node["metadata"]["name"] for node in nodes], _SHOWN)
            warnings.append(f"no node has {unmet} for {hostname} ({names}): it waits until one is added")
    return warnings


def _stopping(node: Json, job: JobSpec) -> list[Json]:
    """The taints that keep the job's pods from a node. A node that is cordoned now may take them later."""
    taints = node["spec"].get("taints", ())
    # Kubernetes tolerates taints of extended resources for pods that ask for these, where that plugin is on.
    gpu = (Toleration(GPU),) if job.gpus else ()
    return [
        taint
        for taint in taints
        if taint["effect"] in _STOPS
        and not taint["key"].startswith("node.kubernetes.io/")
        and not any(_tolerates(toleration, taint) for toleration in (*job.kubernetes.tolerations, *gpu))
    ]


def _tolerates(toleration: Toleration, taint: Json) -> bool:
    is_key = toleration.key in ("", taint["key"])
    is_value = toleration.operator == "Exists" or toleration.value == taint.get("value", "")
    return is_key and is_value and toleration.effect in ("", taint["effect"])
