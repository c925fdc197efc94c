"""Reads the fields of a manifest, and notes those that have no counterpart. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import SpecError

_OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "status", "uid")
"""What the API server writes into an object: no setting of the user's."""

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_NOTES: Mapping[str, str] = {
    "activeDeadlineSeconds": "a run has no time limit; `wait` only limits how long `pulumi up` waits",
    "affinity": 'use container={"placement": […]}, such as "hostname:UNIQUE"',
    "annotations": 'annotations of the TFJob itself; kubernetes={"annotations": …} is for pods',
    "configMap": "put the files into the folder `code`",
    "configMapKeyRef": "write the value into `env`",
    "emptyDir": "a folder that is lost with the pod; programs may use /tmp",
    "envFrom": "write the variables into `env`, and the secret ones into `secrets`",
    "generateName": "the name of a cluster is fixed; each run has its own id",
    "hostNetwork": "pods have names and addresses in the network of Kubernetes",
    "imagePullPolicy": "Kubernetes' default applies: Always for the tag latest, else IfNotPresent",
    "initContainers": "do it at the beginning of the program, or in the image",
    "labels": 'labels of the TFJob itself; kubernetes={"labels": …} is for pods',
    "lifecycle": "the program gets SIGTERM, and has `stop_grace_period` to save",
    "livenessProbe": "`tfdeploy status` and `explain` say that a run has made no step for long; no program is restarted for it",
    "minAvailable": "no task starts before all are ready; `elastic` is for fewer workers",
    "minResources": "the tasks' own requests count",
    "ports": "use `tfdeploy port-forward`",
    "priorityClass": 'a class of the gang scheduler; see kubernetes={"priority_class": …}',
    "queue": 'a queue of Volcano; kubernetes={"queue": …} is one of Kueue',
    "readinessProbe": "a task is ready when its launcher has a port",
    "restartPolicy": "ignored by TFJob too: that of the replica type counts",
    "scheduleTimeoutSeconds": "tasks wait as long as it takes; `start_timeout` ends the run instead",
    "secret": "use `secrets`: each is a file in the folder $TFDEPLOY_SECRETS",
    "subPath": "mount the whole volume, and use a longer path in the program",
    "suspend": "use `tfdeploy stop`",
    "tolerationSeconds": "a toleration has no time limit",
    "topologySpreadConstraints": 'use container={"placement": ["topology.kubernetes.io/zone:GROUP_BY"]}',
    "ttlSecondsAfterFinished": "`pulumi destroy` removes the cluster; what runs is stopped when the run ends",
    "workingDir": "a program starts in the folder `code`, or in one of its own: use absolute paths",
}
"""The name of a field to what to use in its place."""

_WITHOUT_NOTE = "has no counterpart"


class Fields:
    """A mapping of a manifest. What is not read is noted by `close`."""

    def __init__(self, path: str, values: Any, notes: list[str]) -> None:
        """`notes` gets a sentence for each field that has no counterpart.

        Raises:
            SpecError: it is not a mapping.
        """
        if not isinstance(values, Mapping):
            raise SpecError(path, f"{values!r} is not a mapping", "Compare it with kubeflow.org/v1.")
        self.path = path
        self.notes = notes
        self._values = values
        self._read: set[str] = set()

    def take(self, name: str, kind: type = str) -> Any:
        """The value of a field, empty where it is missing.

        Raises:
            SpecError: it is of another type.
        """
        self._read.add(name)
        value = self._values.get(name)
        if value is None:
            return kind()
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise SpecError(f"{self.path}.{name}", f"{value!r} is not of the type {kind.__name__}", "Correct it.")
        return value

    def has(self, name: str) -> bool:
        """Whether a field exists."""
        return self._values.get(name) is not None

    def child(self, name: str) -> "Fields":
        """A field that is a mapping, empty where it is missing."""
        return Fields(f"{self.path}.{name}", self.take(name, dict), self.notes)

    def children(self, name: str) -> list["Fields"]:
        """The items of a field that is a list of mappings."""
        items: Sequence[Any] = self.take(name, list)
        return [Fields(f"{self.path}.{name}[{index}]", item, self.notes) for index, item in enumerate(items)]

    def texts(self, name: str) -> list[str]:
        """The items of a list, as text."""
        return [str(item) for item in self.take(name, list)]

    def mapping(self, name: str) -> dict[str, str]:
        """A mapping of texts, without what kubectl stores in it."""
        return {key: str(value) for key, value in self.take(name, dict).items() if key != _APPLIED}

    def note(self, name: str, text: str = "") -> None:
        """Note a field, or what it loses."""
        self.notes.append(f"{self.path}{f'.{name}' if name else ''}: {text or _NOTES.get(name, _WITHOUT_NOTE)}.")

    def close(self, *ignored: str) -> None:
        """Note the fields that nothing has read, but for `ignored` and what the server writes."""
        for name, value in self._values.items():
            if name not in (*self._read, *ignored, *_OF_THE_SERVER) and value not in (None, {}, [], ""):
                self.note(name)
