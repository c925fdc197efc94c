"""The argument group `kubernetes`. Pure.

Names and labels are as Kubernetes accepts them:
https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import nearest
from .arg_reader import ArgReader
from .argument import ADDED, TEXTS, mapping, own, text, texts
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


def is_content(kubeconfig: str) -> bool:
    """Whether the argument `kubeconfig` is a content, not a path."""
    return "\n" in kubeconfig or kubeconfig.lstrip().startswith("{")


_NAME_FORM = "lower-case letters, digits and hyphens, at most 63 of them, with a letter or digit at both ends"


_OBJECT_FORM = f"the name of an object of Kubernetes: {_NAME_FORM}"


def _secret_name(kubernetes: ArgReader, key: str, name: str) -> str:
    if is_known(name) and not _NAME.fullmatch(name):
        raise kubernetes.error(key, f"{name!r} is not a name", f"Use {_NAME_FORM}.")
    return name


def _kubeconfig(kubernetes: ArgReader, key: str, default: str) -> str:
    if isinstance(kubernetes.args.get(key), Mapping):
        remedy = "Use its JSON: `kubeconfig_json` of pulumi_eks, or pulumi.Output.json_dumps."
        raise kubernetes.error(key, "the value (not shown) is a mapping", remedy)
    content = kubernetes.string(key, default)
    if is_content(content) and (match := _CREDENTIALS.search(content)):
        wrong = f"the content has the credential `{match[1]}`, and this argument is stored in plain text"
        remedy = "Write it into a file that only you can read, and give its path."
        raise kubernetes.error(key, wrong, remedy)
    return content


def _tolerations(kubernetes: ArgReader, key: str, common: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    added = (_toleration(kubernetes, taint) for taint in kubernetes.strings(key) if is_known(taint))
    return tuple(dict.fromkeys((*common, *added)))


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


def _annotations(kubernetes: ArgReader, key: str) -> dict[str, str]:
    return _without_reserved(kubernetes, key, _keyed(kubernetes, key))


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


@dataclass(frozen=True)
class PodSpec:
    """The pods of one job, on the backend "kubernetes"."""

    node_selector: Mapping[str, str] = mapping(_labels)
    """Labels that the nodes of the tasks must have."""
    tolerations: tuple[Toleration, ...] = own(TEXTS, _tolerations, (), of_job=ADDED)
    """Taints of nodes that the tasks tolerate, as `kubectl taint` writes them: "KEY=VALUE:EFFECT", "KEY:EFFECT", "KEY" for every
    value and effect; "*" for all taints."""
    priority_class: str = text(pattern=_NAME, form=_OBJECT_FORM)
    """The priority class of the pods."""
    labels: Mapping[str, str] = mapping(_own_labels)
    """Additional labels of the pods."""
    annotations: Mapping[str, str] = mapping(_annotations)
    """Additional annotations of the pods."""


@dataclass(frozen=True)
class KubernetesSpec(PodSpec):
    """The Kubernetes cluster and the pods, on the backend "kubernetes"."""

    context: str = text()
    """The context of the kubeconfig; by default its current one."""
    kubeconfig: str = own("str", _kubeconfig, "")
    """The kubeconfig: the path of a file, or its content as YAML or JSON, such as the Output of a Kubernetes cluster that the same
    program creates. A content must not have credentials, but may name a program that gets them, as that of EKS does. By default
    $KUBECONFIG, else ~/.kube/config."""
    namespace: str = text(pattern=_NAMESPACE, form=f'{_NAME_FORM} and without dots, such as "training"')
    """An existing namespace; by default that of the context, else "default"."""
    service_account: str = text(pattern=_NAME, form=_OBJECT_FORM)
    """The service account of the pods, for example for access to a bucket; by default "default". Pods do not get its token."""
    image_pull_secrets: tuple[str, ...] = texts(_secret_name)
    """The Secrets of the namespace with the credentials of image registries."""
    queue: str = text(pattern=_NAMESPACE, form='the name of a LocalQueue, such as "training"')
    """The LocalQueue of Kueue that admits the tasks."""
    storage_class: str = text(pattern=_NAME, form=_OBJECT_FORM)
    """The class of the record's volume, and of one for checkpoints, which is created only with it."""
