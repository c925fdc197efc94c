"""What the pods of a cluster need first: a dynamic resource that creates the Service, Secrets, the agent, claims and network policies.

Nothing of it is deleted with the resource: `TaskRunner.delete_all` removes it by its labels after everything else.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from ..base import CONTROLLER, ClusterRef
from ..controller_calls import wait_for
from ..parallel_calls import PARALLEL_CALLS, for_all
from ..record_copy import RecordCopy
from ..stack_config import StackProvider, changed_inputs, plain_values
from ..zipapp import application, version
from .api import ApiServer
from .cluster_objects import ClusterObjects
from .controller_client import PodController
from .drift import shared_objects
from .kubeconfig import store_source
from .labels import AGENT, RECORD, SECRETS, metadata, object_name
from .namespace import parse_home
from .pods import secret

Props = dict[str, Any]

_CLAIM_SECONDS = 120.0


def _agent(cluster: ClusterRef) -> dict[str, Any]:
    data = {"agent.pyz": base64.b64encode(application()).decode()}
    meta = metadata(cluster, f"{AGENT}-{version()}")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "binaryData": data, "immutable": True}


def claim(cluster: ClusterRef, suffix: str, size: str, mode: str, storage_class: str) -> dict[str, Any]:
    """A claim of storage; an empty class is the default one."""
    spec = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": size}},
        **({"storageClassName": storage_class} if storage_class else {}),
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata(cluster, suffix), "spec": spec}


def secrets_suffix(values: Mapping[str, str], token: str) -> str:
    """The suffix of the name of the Secret with these values: other values have another name, and so replace the pods. It is keyed with
    the token, so that no value can be guessed from it."""
    text = token + json.dumps(sorted(values.items()))
    return f"{SECRETS}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


class PodObjectsProvider(StackProvider):
    """Creates the objects."""

    def create(self, props: Props) -> CreateResult:
        """Create what does not exist; update what does."""
        return CreateResult(plain_values(props)["cluster"]["id"], {**props, **_create(plain_values(props))})

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """All but the cluster is updated in place."""
        return changed_inputs(olds, news, ["cluster"])

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        """As create."""
        return UpdateResult({**news, **_create(plain_values(news))})

    def read(self, id_: str, props: Props) -> ReadResult:
        """The objects, or nothing where one of them does not exist, or is not as defined."""
        plain = plain_values(props)
        own = ClusterObjects(ApiServer(plain["cluster"]["home"]), plain["cluster"])
        are_right = all(for_all(_needed_objects(plain), own.is_as_defined, PARALLEL_CALLS))
        return ReadResult(id_, props) if are_right else ReadResult(None, {})


def _needed_objects(plain: Props) -> list[dict[str, Any]]:
    """What `_create` makes. Of the agent and of claims only the names are compared: their content cannot be changed."""
    cluster: ClusterRef = plain["cluster"]
    names = [{"kind": "ConfigMap", "metadata": {"name": plain["agent"]}}]
    names += [{"kind": item["kind"], "metadata": item["metadata"]} for item in plain["claims"]]
    suffix = secrets_suffix(plain["secrets"], plain["token"])
    secrets = [secret(cluster, suffix, plain["secrets"])] if plain["secrets"] else []
    return [*names, *shared_objects(cluster, plain["token"]), *secrets]


def _create_claim(own: ClusterObjects, item: Props) -> None:
    """Create a claim. One that is being deleted ends with the pods that mount it: the controller stops for that, after its record was
    copied to this computer, from where the next submission restores it."""
    name = item["metadata"]["name"]
    existing = own.read(item["kind"], name)
    if existing is not None and "deletionTimestamp" in existing["metadata"]:
        if name == object_name(own.cluster, RECORD):
            RecordCopy(own.cluster).download(PodController(own.cluster))
            own.delete("StatefulSet", object_name(own.cluster, CONTROLLER))
        error = f"the claim {name} is being deleted, and pods still mount it. `pulumi up --refresh` creates it when they have ended"
        wait_for(lambda: own.read(item["kind"], name) is None, error, _CLAIM_SECONDS)
    own.create(item)


def _create(plain: Props) -> Props:
    cluster: ClusterRef = plain["cluster"]
    if plain["kubeconfig"]:
        store_source(parse_home(cluster["home"]).server, plain["kubeconfig"])
    own = ClusterObjects(ApiServer(cluster["home"]), cluster)
    agent = _agent(cluster)
    own.create(agent)
    for item in shared_objects(cluster, plain["token"]):
        own.apply(item)
    for item in plain["claims"]:
        _create_claim(own, item)
    name = ""
    if plain["secrets"]:
        suffix = secrets_suffix(plain["secrets"], plain["token"])
        own.apply(secret(cluster, suffix, plain["secrets"]))
        name = object_name(cluster, suffix)
    return {"agent": agent["metadata"]["name"], "secrets_name": name}


class PodObjects(Resource, module="tfdeploy", name="PodObjects"):
    """What the pods of a cluster need first."""

    agent: pulumi.Output[str]
    secrets_name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        cluster: ClusterRef,
        token: pulumi.Input[str],
        secrets: Mapping[str, pulumi.Input[str]],
        claims: Sequence[Mapping[str, Any]],
        kubeconfig: str,
        opts: pulumi.ResourceOptions,
    ) -> None:
        props = {
            "cluster": cluster,
            "token": token,
            "secrets": pulumi.Output.secret(dict(secrets)),
            "claims": list(claims),
            "kubeconfig": kubeconfig,
            "agent_version": version(),
            "agent": None,
            "secrets_name": None,
        }
        super().__init__(PodObjectsProvider(), name, props, opts)
