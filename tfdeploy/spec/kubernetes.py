"""The argument group `kubernetes`. Pure.

Names and labels are as Kubernetes accepts them:
https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from ..errors import nearest
from .arg_reader import ArgReader
from .unknown_values import is_known

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
"""What a taint does to pods that do not tolerate it."""

EQUAL, EXISTS = "Equal", "Exists"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
OWN_PREFIX = "tfdeploy"
"""Labels and annotations of tfdeploy begin with it."""

_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_VALUE = "([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
_KEY = re.compile(rf"((?=[^/]{{1,253}}/){_LABEL}(\.{_LABEL})*/)?{_VALUE}")
_LABEL_VALUE = re.compile(f"{_VALUE}?")
_CREDENTIALS = re.compile(r"""["']?\b(client-key-data|token|password|id-token|refresh-token)["']?\s*:""")


@dataclass(frozen=True)
class Toleration:
    """A taint of nodes that pods tolerate."""

    key: str = ""
    """Empty for every taint."""
    value: str = ""
    operator: str = EXISTS
    effect: str = ""
    """Empty for every effect."""


@dataclass(frozen=True)
class PodSpec:
    """The pods of one job."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    priority_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KubernetesSpec:
    """The Kubernetes cluster, and what all pods share."""

    context: str = ""
    kubeconfig: str = ""
    """A path, or a content; see `is_content`."""
    namespace: str = ""
    """Empty for that of the context."""
    service_account: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    queue: str = ""
    storage_class: str = ""
    pod: PodSpec = field(default_factory=PodSpec)
    """What pods have that are not of one job: the controller's."""


JOB_KEYS = tuple(field.name for field in fields(PodSpec))
KEYS = (*(field.name for field in fields(KubernetesSpec) if field.name != "pod"), *JOB_KEYS)


def is_content(kubeconfig: str) -> bool:
    """Whether the argument `kubeconfig` is a content, not a path."""
    return "\n" in kubeconfig or kubeconfig.lstrip().startswith("{")


def pod_spec(kubernetes: ArgReader, common: PodSpec) -> PodSpec:
    """A group `kubernetes` over the cluster's one, `common`. Tolerations are added to the cluster's, and mappings are merged.

    Raises:
        SpecError: an argument is not valid.
    """
    own = tuple(_toleration(kubernetes, text) for text in kubernetes.strings("tolerations") if is_known(text))
    return PodSpec(
        node_selector={**common.node_selector, **_labels(kubernetes, "node_selector")},
        tolerations=tuple(dict.fromkeys((*common.tolerations, *own))),
        priority_class=_name(kubernetes, "priority_class") or common.priority_class,
        labels={**common.labels, **_own_labels(kubernetes, "labels")},
        annotations={**common.annotations, **_annotations(kubernetes)},
    )


def kubernetes_spec(kubernetes: ArgReader) -> KubernetesSpec:
    """The cluster's group `kubernetes`.

    Raises:
        SpecError: an argument is not valid.
    """
    queue = kubernetes.matching("queue", _NAMESPACE, 'the name of a LocalQueue, such as "training"')
    return KubernetesSpec(
        context=kubernetes.string("context"),
        kubeconfig=_kubeconfig(kubernetes),
        namespace=kubernetes.matching("namespace", _NAMESPACE, f'{_NAME_FORM} and without dots, such as "training"'),
        service_account=_name(kubernetes, "service_account"),
        image_pull_secrets=_names(kubernetes, "image_pull_secrets"),
        queue=queue,
        storage_class=_name(kubernetes, "storage_class"),
        pod=pod_spec(kubernetes, PodSpec()),
    )


_NAME_FORM = "lower-case letters, digits and hyphens, at most 63 of them, with a letter or digit at both ends"


def _name(kubernetes: ArgReader, key: str) -> str:
    return kubernetes.matching(key, _NAME, f"the name of an object of Kubernetes: {_NAME_FORM}")


def _names(kubernetes: ArgReader, key: str) -> tuple[str, ...]:
    names = kubernetes.strings(key)
    for name in names:
        if is_known(name) and not _NAME.fullmatch(name):
            raise kubernetes.error(key, f"{name!r} is not a name", f"Use {_NAME_FORM}.")
    return tuple(dict.fromkeys(names))


def _kubeconfig(kubernetes: ArgReader) -> str:
    if isinstance(kubernetes.args.get("kubeconfig"), Mapping):
        remedy = "Use its JSON: `kubeconfig_json` of pulumi_eks, or pulumi.Output.json_dumps."
        raise kubernetes.error("kubeconfig", "the value (not shown) is a mapping", remedy)
    text = kubernetes.string("kubeconfig")
    if is_content(text) and (match := _CREDENTIALS.search(text)):
        wrong = f"the content has the credential `{match[1]}`, and this argument is stored in plain text"
        remedy = "Write it into a file that only you can read, and give its path."
        raise kubernetes.error("kubeconfig", wrong, remedy)
    return text


def _toleration(kubernetes: ArgReader, text: str) -> Toleration:
    taint, _, effect = text.partition(":")
    key, equal, value = taint.partition("=")
    if effect and effect not in EFFECTS:
        remedy = nearest(effect, EFFECTS)
        raise kubernetes.error("tolerations", f"{text!r} has the effect {effect!r}", remedy)
    if (key != "*" and not _KEY.fullmatch(key)) or not _LABEL_VALUE.fullmatch(value) or (key == "*" and equal):
        remedy = 'Use "KEY=VALUE:EFFECT", "KEY:EFFECT", "KEY" or "*", such as "dedicated=training:NoSchedule".'
        raise kubernetes.error("tolerations", f"{text!r} is not a taint", remedy)
    return Toleration("" if key == "*" else key, value, EQUAL if equal else EXISTS, effect)


def _labels(kubernetes: ArgReader, key: str) -> dict[str, str]:
    """A mapping of label keys to label values."""
    labels = _keyed(kubernetes, key)
    for name, value in labels.items():
        if is_known(value) and not _LABEL_VALUE.fullmatch(value):
            remedy = "Use at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends."
            raise kubernetes.error(f"{key}.{name}", f"{value!r} is not the value of a label", remedy)
    return labels


def _own_labels(kubernetes: ArgReader, key: str) -> dict[str, str]:
    """Labels that the user adds to objects."""
    labels = _labels(kubernetes, key)
    if QUEUE_LABEL in labels:
        raise kubernetes.error(f"{key}.{QUEUE_LABEL}", "the label is set by tfdeploy", "Use the argument `queue`.")
    return _without_reserved(kubernetes, key, labels)


def _annotations(kubernetes: ArgReader) -> dict[str, str]:
    return _without_reserved(kubernetes, "annotations", _keyed(kubernetes, "annotations"))


def _without_reserved(kubernetes: ArgReader, key: str, values: dict[str, str]) -> dict[str, str]:
    for name in values:
        if name.startswith(OWN_PREFIX):
            raise kubernetes.error(f"{key}.{name}", f"the prefix {OWN_PREFIX!r} is tfdeploy's", "Use another key.")
    return values


def _keyed(kubernetes: ArgReader, key: str) -> dict[str, str]:
    values = kubernetes.mapping(key)
    for name in values:
        if not _KEY.fullmatch(name):
            remedy = 'Use a key such as "team" or "example.com/team".'
            raise kubernetes.error(f"{key}.{name}", "is not a key of Kubernetes", remedy)
    return values
