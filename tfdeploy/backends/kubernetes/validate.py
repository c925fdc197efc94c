"""Checks of a plan against the Kubernetes cluster: errors for what cannot work, and warnings. They only read."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import yaml

from ...errors import SpecError, nearest
from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec
from ...spec.docker import HOST
from ...spec.jobs import JobSpec
from ...spec.kubernetes import Toleration
from ...spec.unknown_values import is_known
from ...units import named, quantity, text_of_size
from ..base import CONTROLLER, FAIL
from ..validate import refuse_requirements, refuse_script
from .api import FORBIDDEN, NOT_FOUND, ApiError, ApiServer
from .discover import check_version
from .labels import ID_LABEL
from .permissions import missing, role, verbs_of
from .pods import GPU, is_unprivileged, mounts

Json = Mapping[str, Any]

_POD_SECURITY = "pod-security.kubernetes.io/enforce"
_STOPS = ("NoSchedule", "NoExecute")
_SHOWN = 3
_NEEDED_OF_PODS = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


def refuse(
    api: ApiServer, spec: ClusterSpec, plan: Plan, code_files: Sequence[str], existing: Collection[str]
) -> list[str]:
    """Refuse what cannot work; the warnings. `existing` has the hostnames of the tasks that exist.

    Raises:
        SpecError: with the argument, what is wrong with it, and a remedy.
        Unreachable: the server does not respond.
    """
    refuse_script(spec, code_files)
    refuse_requirements(spec)
    _refuse_arguments(spec)
    if (version := check_version(api)).state == FAIL:
        raise SpecError(f"{spec.name}: backend", version.detail, version.remedy)
    _refuse_namespace(api, spec, plan)
    _refuse_missing_permissions(api, spec)
    _refuse_missing_objects(api, spec)
    jobs = {job.name: job for job in spec.jobs}
    tasks = [(task.hostname, jobs[task.job]) for task in plan.needed_tasks if task.hostname not in existing]
    limits = _limits(api)
    return [
        *_quota_warnings(api, spec, tasks, not existing, limits),
        *_limit_warnings(api, tasks, not existing, limits or ()),
        *_node_warnings(api, tasks),
    ]


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


def _refuse_namespace(api: ApiServer, spec: ClusterSpec, plan: Plan) -> None:
    namespace = readable(api, f"/api/v1/namespaces/{api.namespace}")
    where = f"{spec.name}: kubernetes.namespace"
    if namespace is None:
        remedy = f"Create it: kubectl create namespace {api.namespace}; or use another one."
        raise SpecError(where, f"{api.server} has no namespace {api.namespace!r}", remedy)
    if namespace.get("metadata", {}).get("deletionTimestamp"):
        raise SpecError(where, f"the namespace {api.namespace!r} is being deleted", "Use another one.")
    _refuse_insecure(spec, plan, (namespace.get("metadata", {}).get("labels") or {}).get(_POD_SECURITY, ""))


def _refuse_insecure(spec: ClusterSpec, plan: Plan, level: str) -> None:
    """Refuse pods that the namespace's level of Pod Security forbids:
    https://kubernetes.io/docs/concepts/security/pod-security-standards/."""
    if level not in ("baseline", "restricted"):
        return
    rule = f"the namespace enforces the Pod Security level {level!r}"
    for job in spec.jobs:
        folders = [item.source for item in mounts(spec, plan, job.container.volumes, "") if item.source.startswith("/")]
        if folders:
            remedy = "Use a PersistentVolumeClaim of the namespace, or a URL."
            raise SpecError(
                f"{spec.name}: container.volumes", f"{rule}, without folders of nodes ({folders[0]})", remedy
            )
        if level == "restricted" and not is_unprivileged(job.container.user):
            remedy = 'Set it to numbers other than 0, such as "1000:1000".'
            raise SpecError(f"{spec.name}: container.user", f"{rule}, and the tasks may run as root", remedy)


def _refuse_missing_permissions(api: ApiServer, spec: ClusterSpec) -> None:
    rules = missing(api)
    if rules:
        text = yaml.safe_dump(role(api.namespace, rules), sort_keys=False)
        remedy = f"It needs a RoleBinding to this Role (docs/kubernetes-role.yaml has all of it):\n{text}"
        raise SpecError(f"{spec.name}: kubernetes", f"the user may not {verbs_of(rules)} in {api.namespace}", remedy)


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


def _quota_warnings(
    api: ApiServer,
    spec: ClusterSpec,
    tasks: Sequence[tuple[str, JobSpec]],
    is_new: bool,
    limits: Sequence[Json] | None,
) -> list[str]:
    """What the new tasks need more than a quota of the namespace has left, with the controller of a new cluster. They wait until
    others end."""
    quotas = (readable(api, f"/api/v1/namespaces/{api.namespace}/resourcequotas") or {}).get("items", ())
    if not quotas:
        return []
    totals = _totals([job for _, job in tasks], int(is_new))
    warnings = _default_warnings(api, quotas, limits)
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


def _default_warnings(api: ApiServer, quotas: Sequence[Json], limits: Sequence[Json] | None) -> list[str]:
    """With a quota of processors or memory, Kubernetes refuses pods without a request, such as the controller's, unless it adds one."""
    names = {name for quota in quotas for name in quota.get("status", {}).get("hard", {}) if name in _NEEDED_OF_PODS}
    if not names or limits is None or limits:
        return []
    counted = ", ".join(sorted(names))
    return [
        f"a quota of {api.namespace} counts {counted}: the controller's pod is refused without a LimitRange that has defaults"
    ]


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


def _limits(api: ApiServer) -> Sequence[Json] | None:
    """What the LimitRanges of the namespace demand, with their names; None where the user may not read them."""
    items = (readable(api, f"/api/v1/namespaces/{api.namespace}/limitranges") or {}).get("items")
    if items is None:
        return None
    return [{"name": item["metadata"]["name"], **limit} for item in items for limit in item["spec"]["limits"]]


def _limit_warnings(
    api: ApiServer, tasks: Sequence[tuple[str, JobSpec]], is_new: bool, limits: Sequence[Json]
) -> list[str]:
    """The first task of each job, and the controller of a new cluster, whose pods a LimitRange refuses."""
    firsts = {job.name: (hostname, _sizes(job)) for hostname, job in reversed(tasks)}
    pods = [*firsts.values(), *([(CONTROLLER, dict[str, float]())] if is_new else ())]
    return [
        f"the LimitRange {limit['name']} of {api.namespace} refuses the pod of {hostname}: {wrong}"
        for hostname, sizes in pods
        for limit in limits
        if limit["type"] in ("Container", "Pod")
        for wrong in _outside(limit, sizes, limits)
    ]


def _outside(limit: Json, sizes: Mapping[str, float], limits: Sequence[Json]) -> Iterator[str]:
    """Why a LimitRange refuses a pod of one container; Kubernetes gives it defaults first."""
    for name in dict.fromkeys([*limit.get("min", ()), *limit.get("max", ()), *limit.get("maxLimitRequestRatio", ())]):
        request, most = (sizes.get(name) or _default(member, name, limits) for member in ("defaultRequest", "default"))
        least, maximum, ratio = (limit.get(key, {}).get(name) for key in ("min", "max", "maxLimitRequestRatio"))
        where = f"per {limit['type']}"
        if least and request < quantity(least):
            yield f"{name} {_text(name, request)} is less than {least} {where}"
        if maximum and not most:
            yield f"{name} has no limit, and {maximum} {where} is the maximum"
        elif maximum and most > quantity(maximum):
            yield f"{name} {_text(name, most)} is more than {maximum} {where}"
        if ratio and not (request and most and most <= quantity(ratio) * request):
            yield f"the limit of {name} may be {ratio} times its request {where}"


def _default(member: str, name: str, limits: Sequence[Json]) -> float:
    """What Kubernetes gives a container that names nothing; 0 for nothing."""
    texts = [limit[member][name] for limit in limits if limit["type"] == "Container" and name in limit.get(member, ())]
    return quantity(texts[-1]) if texts else 0.0


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
