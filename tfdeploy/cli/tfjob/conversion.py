"""From a TFJob of kubeflow.org/v1 to the arguments of a `TensorFlowCluster`, and to the text of a program with it. Pure.

The fields are those of
https://github.com/kubeflow/trainer/blob/v1.8.1/pkg/apis/kubeflow.org/v1/tensorflow_types.go and `common_types.go` beside it.
"""

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import SpecError, nearest
from ...spec.kubernetes import QUEUE_LABEL
from ...units import wrapped
from .manifest_fields import Fields
from .replica_type import ReplicaType, read_replica_type

API_VERSION, KIND = "kubeflow.org/v1", "TFJob"

_MASTER = "master"
_JOBS = {"chief": "chief", _MASTER: "chief", "worker": "worker", "ps": "ps", "evaluator": "evaluator"}
"""ReplicaType type, in any case, to job."""

_SINGLE = ("chief", "evaluator")
_LEADING = ("chief", "worker", "ps", "evaluator")
"""The jobs in the order in which their command is that of the cluster."""

_RUN_POLICY = (
    *("activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "schedulingPolicy", "suspend"),
    "ttlSecondsAfterFinished",
)
_NOT_IN_A_NAME = re.compile("[^A-Za-z0-9-]+")

_WIDTH = 100
_INDENT = "    "


@dataclass(frozen=True)
class Conversion:
    """One TFJob as arguments."""

    name: str
    args: Mapping[str, Any]
    """Without `secrets`."""
    secrets: Sequence[str]
    """The names of `secrets`: a manifest has no values of them."""
    notes: Sequence[str]
    """A sentence for each field that has no counterpart."""


def convert(manifest: Mapping[str, Any]) -> Conversion:
    """A TFJob.

    Raises:
        SpecError: the manifest is not one.
    """
    notes: list[str] = []
    top = Fields(KIND, manifest, notes)
    meta = Fields("metadata", top.take("metadata", dict), notes)
    spec = Fields("spec", top.take("spec", dict), notes)
    name = _name(meta)
    replicas, has_master = _replicas(spec)
    args = {**_command(replicas, notes), **_counts(replicas, has_master, notes)}
    args |= _policies(spec, replicas, args)
    args |= _settings(replicas)
    if kubernetes := {**_kubernetes(meta, replicas, notes), **args.get("kubernetes", {})}:
        args["kubernetes"] = kubernetes
    if graces := [replica.grace_seconds for replica in replicas if replica.grace_seconds]:
        args["stop_grace_period"] = f"{max(graces)}s"
    for part in (spec, meta):
        part.close()
    secrets = dict.fromkeys(name for replica in replicas for name in replica.secrets)
    return Conversion(name, args, tuple(secrets), tuple(dict.fromkeys(notes)))


def _name(meta: Fields) -> str:
    """The name of the TFJob as that of a cluster, and of a variable of Python where it has no hyphen."""
    name = meta.take("name")
    if not name:
        name = meta.take("generateName")
        meta.note("generateName")
    name = _NOT_IN_A_NAME.sub("-", name).strip("-")
    return name if name[:1].isalpha() else f"tfjob-{name}".rstrip("-")


def _replicas(spec: Fields) -> tuple[list[ReplicaType], bool]:
    types = spec.take("tfReplicaSpecs", dict)
    if not types:
        raise SpecError("spec.tfReplicaSpecs", "is missing", "Compare it with kubeflow.org/v1.")
    replicas = []
    for kind in types:
        if kind.lower() not in _JOBS:
            raise SpecError(f"spec.tfReplicaSpecs.{kind}", "is unknown", nearest(kind.lower(), [*_JOBS]))
        fields = Fields(f"spec.tfReplicaSpecs.{kind}", types[kind], spec.notes)
        replicas.append(read_replica_type(_JOBS[kind.lower()], fields))
    replicas = [replica for replica in replicas if replica.count]
    return sorted(replicas, key=lambda item: _LEADING.index(item.job)), any(kind.lower() == _MASTER for kind in types)


def _command(replicas: Sequence[ReplicaType], notes: list[str]) -> dict[str, Any]:
    command: list[str] = next((replica.command for replica in replicas if replica.command), [])
    for replica in replicas:
        if replica.command != command:
            own = replica.command or "none, so that of its image"
            notes.append(
                f"the command of {replica.job}: {own}. All replicas have the same here, and read their type from TF_CONFIG."
            )
    if not command:
        notes.append("command: none is given, and the entry point of the image is not known here. Write it.")
    # A program of a TFJob reads TF_CONFIG.
    return {"command": command, "flags": "never"} if command else {}


def _counts(replicas: Sequence[ReplicaType], has_master: bool, notes: list[str]) -> dict[str, Any]:
    counts: dict[str, Any] = {}
    for replica in replicas:
        if replica.job in _SINGLE and replica.count > 1:
            notes.append(f"{replica.count} replicas of {replica.job}: there can be only one.")
        counts["workers" if replica.job == "worker" else replica.job] = (
            True if replica.job in _SINGLE else replica.count
        )
    return {**counts, **({"tf_config_master": True} if has_master else {})}


def _kubernetes(meta: Fields, replicas: Sequence[ReplicaType], notes: list[str]) -> dict[str, Any]:
    """What of the group `kubernetes` is only the cluster's."""
    labels = meta.mapping("labels")
    accounts = list(dict.fromkeys(replica.service_account for replica in replicas if replica.service_account))
    if len(accounts) > 1:
        notes.append(f"serviceAccountName: {', '.join(accounts)}. All pods of a cluster have the first one.")
    group = {
        "namespace": meta.take("namespace"),
        "queue": labels.pop(QUEUE_LABEL, ""),
        "service_account": next(iter(accounts), ""),
        "image_pull_secrets": list(dict.fromkeys(name for replica in replicas for name in replica.image_pull_secrets)),
    }
    for name, values in (("labels", labels), ("annotations", meta.mapping("annotations"))):
        if values:
            meta.note(name)
    return {key: value for key, value in group.items() if value}


def _policies(spec: Fields, replicas: Sequence[ReplicaType], args: Mapping[str, Any]) -> dict[str, Any]:
    """`successPolicy`, `enableDynamicWorker` and `runPolicy`, which older manifests have in `spec` itself."""
    policies: dict[str, Any] = {}
    if success := spec.take("successPolicy"):
        if success == "AllWorkers":
            policies["success"] = "all-workers"
        elif success != "Default":
            spec.note("successPolicy", f"{success!r} is unknown; the chief decides, else worker 0")
    if spec.take("enableDynamicWorker", bool):
        if "ps" in args and "workers" in args and "success" not in policies:
            policies["elastic"] = {"max": max(2, args["workers"])}
            spec.note("enableDynamicWorker", "`elastic` has the highest number of workers, which a TFJob does not name")
        else:
            spec.note("enableDynamicWorker", "`elastic` needs a ps, and not all workers to succeed")
    former = {name: spec.take(name, object) for name in _RUN_POLICY if spec.has(name)}
    run = Fields("spec.runPolicy", {**former, **spec.take("runPolicy", dict)}, spec.notes)
    if run.has("backoffLimit"):
        _limit_restarts(run.take("backoffLimit", int), replicas, run)
    clean = run.take("cleanPodPolicy")
    if clean in ("None", "All"):
        run.note("cleanPodPolicy", "what still runs when the run has ended is stopped, and all logs are kept")
    scheduling = run.child("schedulingPolicy")
    total = sum(replica.count for replica in replicas)
    if scheduling.has("minAvailable") and scheduling.take("minAvailable", int) != total:
        scheduling.note("minAvailable")
    for part in (scheduling, run):
        part.close()
    return policies


def _limit_restarts(limit: int, replicas: Sequence[ReplicaType], run: Fields) -> None:
    """`backoffLimit` counts the restarts of all replicas together, by the kubelet."""
    restarted = [replica for replica in replicas if replica.settings["restart"].get("maximum") != 0]
    for replica in restarted:
        replica.settings["restart"]["maximum"] = limit
    if restarted:
        run.note("backoffLimit", f"{limit} restarts of each task, where a TFJob counts those of all together")


def _settings(replicas: Sequence[ReplicaType]) -> dict[str, Any]:
    """The settings of jobs; what all jobs have in common is the cluster's, where it can be."""
    shared: dict[str, Any] = {}
    for key in ("env", "restart"):
        _share(shared, replicas, key)
    for group in ("container", "kubernetes"):
        own = [replica.settings.get(group, {}) for replica in replicas]
        common = {key: value for key, value in own[0].items() if all(item.get(key) == value for item in own)}
        if common:
            shared[group] = common
        for replica, members in zip(replicas, own, strict=True):
            replica.settings[group] = {key: value for key, value in members.items() if key not in common}
    jobs = {replica.job: {name: value for name, value in replica.settings.items() if value} for replica in replicas}
    jobs = {name: own for name, own in jobs.items() if own}
    return {**shared, **({"jobs": jobs} if jobs else {})}


def _share(shared: dict[str, Any], replicas: Sequence[ReplicaType], key: str) -> None:
    """Move a setting that all jobs have to the cluster."""
    first = replicas[0].settings.get(key)
    if first and all(replica.settings.get(key) == first for replica in replicas):
        shared[key] = first
        for replica in replicas:
            del replica.settings[key]


def program(conversions: Sequence[Conversion], other_notes: Sequence[str] = ()) -> str:
    """A program of Pulumi."""
    names = ", ".join(conversion.name for conversion in conversions)
    lines = [f'"""Made from the TFJob {names} by `tfdeploy import-tfjob`."""', "", "import pulumi", ""]
    lines += ["from tfdeploy import TensorFlowCluster", ""]
    lines += _comment("Of other manifests in the file:", other_notes)
    for conversion in conversions:
        lines += _comment("What has no counterpart:", conversion.notes) + _cluster(conversion)
    return "\n".join(lines) + "\n"


def _comment(title: str, notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    texts = [line for note in notes for line in wrapped(f"- {note}", _WIDTH - 2)]
    return [f"# {title}", *(f"# {text}" if text.startswith("- ") else f"#   {text.strip()}" for text in texts)]


def _cluster(conversion: Conversion) -> list[str]:
    variable = re.sub(r"\W", "_", conversion.name.lower())
    variable += "_" * keyword.iskeyword(variable)
    secrets = [f'{json.dumps(name)}: pulumi.Config().require_secret("{name}")' for name in conversion.secrets]
    return [
        f"{variable} = TensorFlowCluster(",
        f"{_INDENT}{literal(conversion.name)},",
        *(f"{_INDENT}{name}={literal(value, _INDENT, len(name) + 6)}," for name, value in conversion.args.items()),
        *([f"{_INDENT}secrets={{", *(f"{_INDENT * 2}{line}," for line in secrets), f"{_INDENT}}},"] if secrets else []),
        ")",
        f'pulumi.export("{conversion.name}", {variable}.state)',
    ]


def literal(value: Any, indent: str = "", used: int = 0) -> str:
    """A value as Python, on several lines where it is longer than one; `used` columns are taken on the first."""
    if isinstance(value, Mapping):
        items = [f"{json.dumps(key)}: {literal(item, indent + _INDENT, len(key) + 10)}" for key, item in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, (list, tuple)):
        items = [literal(item, indent + _INDENT, 4) for item in value]
        opening, closing = "[", "]"
    else:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    line = f"{opening}{', '.join(items)}{closing}"
    if "\n" not in line and len(line) + len(indent) + used <= _WIDTH:
        return line
    rows = "".join(f"{indent}{_INDENT}{item},\n" for item in items)
    return f"{opening}\n{rows}{indent}{closing}"
