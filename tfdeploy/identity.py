"""The identity of a cluster: an id that no other cluster has, drawn in its first update and stored in the state of its stack.

Two people, logins or computers that use the same project, stack and name either share one state, and so one cluster, or have two.

While its run moves, the state has the cluster on several backends. The resources at a new place have other names, so that Pulumi
creates them, and deletes the former ones only at the end of an update that succeeds. After one that fails, both are in the state, and
an update that returns finds the former ones unchanged.
"""

import getpass
import os
import platform
import secrets
import string
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import pulumi

from .backends.backend import Backend
from .backends.base import ClusterRef, DiscoveredCluster, place_title
from .errors import SpecError
from .plan.inventory import PlaceRef
from .spec.backends import is_this_computer
from .units import moment

_LENGTH = 10
_ALPHABET = string.ascii_lowercase + string.digits
_READ_STATE = "pulumi:pulumi:readStackResourceOutputs"
_HALF_WRITTEN = "failed to load checkpoint"
"""In the engine's message, where the file of a stack in a `file://` backend was read while the same engine wrote it."""

_READ_ATTEMPTS, _READ_PAUSE = 10, 0.2
_STASH = "pulumi:index:Stash"
_STATE_FORMAT = "1"
"""What the resources of a cluster have as `format`. The states of the versions before 1.0.0 have none."""

_CLEANUP, _CLEANUP_END = "pulumi-python:dynamic/tfdeploy:Cleanup", "-cleanup"

_names: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""Monitor of a run of a Pulumi program to the names of its clusters; an entry is removed at the end of that run."""


@dataclass(frozen=True)
class Identity:
    """The part of a `ClusterRef` that never changes."""

    id: str
    owner: str


@dataclass(frozen=True)
class StoredPlace:
    """A cluster on one backend, as the state of its stack has it."""

    prefix: str
    """The names of its resources begin with it."""
    cluster: ClusterRef
    place: PlaceRef
    token: str
    resources: frozenset[str] = frozenset()
    """The names of its resources, without the prefix: `run` where a run was submitted there."""


@dataclass(frozen=True)
class StoredCluster:
    """What the state of the stack has of a cluster."""

    identity: Identity
    places: tuple[StoredPlace, ...] = ()
    """Where it is. Empty after a first update that was interrupted before it created anything."""

    def at(self, backend: str) -> StoredPlace | None:
        """What the state has of it on this backend."""
        return next((place for place in self.places if place.cluster["backend"] == backend), None)


def stored_cluster(name: str, component: str) -> StoredCluster | None:
    """What the current stack's state has of the component resource with this name and type; None before its first update."""
    return find_stored(_read_state(), name, component)


def stored_names(component: str) -> list[str]:
    """The names of all components of this type in the current stack's state."""
    return [urn.rpartition("::")[2] for urn in stored_urns() if urn.split("::")[2].split("$")[-1] == component]


def stored_urns() -> list[str]:
    """The URNs of all resources in the current stack's state."""
    return [*_read_state()]


def _read_state(attempts: int = _READ_ATTEMPTS) -> Mapping[str, Any]:
    """The outputs of the resources in the stack's state, by URN. While the engine writes that file, a read may find it half written:
    then ask again."""
    try:
        state = pulumi.runtime.invoke(_READ_STATE, {"stackName": pulumi.get_stack()}).value
    except Exception as error:
        if _HALF_WRITTEN not in str(error) or not attempts:
            raise
        time.sleep(_READ_PAUSE)
        return _read_state(attempts - 1)
    return (state or {}).get("outputs") or {}


def find_stored(resources: Mapping[str, Any], name: str, component: str) -> StoredCluster | None:
    """The cluster among the outputs of a stack's resources by URN. Pure."""
    by_name = {(_type_of(urn), urn.rpartition("::")[2]): item["outputs"] for urn, item in resources.items()}
    stash = by_name.get((f"{component}${_STASH}", identity_name(name)))
    if not stash:
        return None
    identity = Identity(**stash["output"])
    return StoredCluster(identity, _find_places(by_name, name, component, identity.id))


def _find_places(
    by_name: Mapping[tuple[str, str], Mapping[str, Any]], name: str, component: str, cluster_id: str
) -> tuple[StoredPlace, ...]:
    """The places of a cluster among the outputs of resources by type and name. Another cluster may have a name that begins alike."""
    own = [resource for kind, resource in by_name if kind.startswith(f"{component}$")]
    places = []
    for (kind, resource), outputs in by_name.items():
        if kind != f"{component}${_CLEANUP}" or not resource.endswith(_CLEANUP_END):
            continue
        prefix, cluster = resource[: -len(_CLEANUP_END)], outputs["cluster"]
        if prefix not in (name, f"{name}-{cluster['backend']}") or cluster["id"] != cluster_id:
            continue
        refuse_other_format(name, outputs)
        resources = frozenset(item[len(prefix) + 1 :] for item in own if item.startswith(f"{prefix}-"))
        places.append(StoredPlace(prefix, cluster, outputs["place"], str(outputs.get("token") or ""), resources))
    return tuple(places)


def resource_prefix(
    name: str, backend: str, places: Sequence[StoredPlace], clusters: Callable[[], Sequence[str]]
) -> str:
    """What the names of the cluster's resources on this backend begin with: its name, if no other place has it already.

    Raises:
        SpecError: it is the name of another one of the stack's `clusters`.
    """
    prefixes = {place.cluster["backend"]: place.prefix for place in places}
    prefix = prefixes.get(backend, f"{name}-{backend}" if name in prefixes.values() else name)
    if prefix != name and prefix in clusters():
        wrong = f"while the run moves, resources are named {prefix}-…, and this stack has a cluster {prefix!r}"
        raise SpecError(
            f"{name}: backend", wrong, f"Destroy {name!r} and create it on the other backend, or move it in two steps."
        )
    return prefix


def with_format(props: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a resource, with the format that its state has."""
    return {**props, "format": _STATE_FORMAT}


def refuse_other_format(name: str, props: Mapping[str, Any]) -> None:
    """Refuse a resource that another version has stored, before anything of it is changed or deleted.

    Raises:
        SpecError: with what to do.
    """
    if props.get("format") != _STATE_FORMAT:
        wrong = "the state of its stack was written by a version of tfdeploy before 1.0.0, or by a later one"
        raise SpecError(name, wrong, "Destroy it with the version that made it.")


def _type_of(urn: str) -> str:
    """The types of the parent and of the resource; its other ancestors do not matter."""
    return "$".join(urn.split("::")[2].split("$")[-2:])


def choose_identity(name: str, stored: StoredCluster | None, adopt: str) -> Identity:
    """The stored identity; else that of the cluster to adopt; else a new one. A preview has none yet.

    Raises:
        SpecError: `adopt` names another cluster than the one that the stack has.
    """
    if stored is None:
        return Identity(adopt or ("" if pulumi.runtime.is_dry_run() else _new_id()), _current_user())
    if adopt not in ("", stored.identity.id):
        wrong = f"the stack already has the cluster {stored.identity.id}, not {adopt}"
        raise SpecError(f"{name}: adopt", wrong, "Remove `adopt`, or use another stack.")
    return stored.identity


def refuse_second(name: str) -> None:
    """Refuse a second cluster of this name in one program."""
    names = _names.setdefault(pulumi.runtime.settings.get_monitor(), set())
    if name in names:
        raise SpecError("TensorFlowCluster", f"the name {name!r} is used twice in this program", "Choose another.")
    names.add(name)


def refuse_other_name(name: str, component: str, aliases: Sequence[Any]) -> None:
    """Refuse an alias of the component that would rename an existing cluster.

    Raises:
        SpecError: with the name to keep.
    """
    for former in {*map(_name_of_alias, aliases)} - {"", name}:
        if stored_cluster(former, component) and not stored_cluster(name, component):
            wrong = (
                f"the cluster {former!r} cannot be renamed, because its folders, services and machines have its name"
            )
            remedy = f"Keep the name, or remove the alias: then Pulumi deletes {former!r} and creates {name!r}."
            raise SpecError(f"{name}: aliases", wrong, remedy)


def _name_of_alias(alias: Any) -> str:
    """The name in an alias, which is a URN or a `pulumi.Alias`; empty if it has none, or one that only the update knows."""
    former = alias.rpartition("::")[2] if isinstance(alias, str) else getattr(alias, "name", "")
    return former if isinstance(former, str) else ""


def cluster_to_adopt(stored: StoredCluster | None, adopt: str, backend: str, completed_by: frozenset[str]) -> str:
    """The id of the cluster that this update adopts. It is empty once an update has done so, although the argument is still set: when
    the state has a resource of `Backend.adoption_completed_by`. A cluster that moves to another backend adopts nothing there.
    """
    place = stored.at(backend) if stored else None
    is_adopted = not completed_by or completed_by & place.resources if place else stored and stored.places
    return "" if is_adopted else adopt


def _new_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


def _current_user() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no entry in the list of users
        user = str(os.getuid())
    return f"{user}@{platform.node()}"


def register_identity(name: str, identity: Identity, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """Store the identity in the state of the stack, where its first value remains."""
    opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(ignore_changes=["input"]))
    return pulumi.Stash(identity_name(name), input={"id": identity.id, "owner": identity.owner}, opts=opts)


def identity_name(name: str) -> str:
    """The name of the resource that stores the identity."""
    return f"{name}-id"


def refuse_other_place(backend: Backend, cluster: ClusterRef, stored: StoredCluster | None, place: PlaceRef) -> None:
    """Refuse a place that has the address of the stored one, but is another machine, engine or account.

    Raises:
        SpecError: with the names of both.
    """
    stored_place = stored.at(cluster["backend"]) if stored else None
    former = stored_place.place if stored_place else None
    if not stored_place or not former or not former["id"] or former["id"] == place["id"]:
        return
    if not is_this_computer(cluster["backend"]) and stored_place.cluster["home"] != cluster["home"]:
        return  # the user has chosen another place
    wrong = f"the cluster {cluster['id']} is on {place_title(former)}, and this is {place_title(place)}"
    remedy = (
        "Update or destroy it there. If that place no longer exists, `pulumi destroy` removes the cluster from the stack, and "
        "changes nothing here."
    )
    described = backend.describe_other_place(cluster, former, place)
    raise SpecError(f"{cluster['name']}: backend", *(described or (wrong, remedy)))


def others_of_same_name(cluster: ClusterRef, discovered: Sequence[DiscoveredCluster]) -> list[str]:
    """A warning for each cluster with the same project, stack and name that is another cluster. Pure."""
    same = [
        item
        for item in discovered
        if item.cluster["id"] != cluster["id"]
        and all(item.cluster[key] == cluster[key] for key in ("backend", "project", "stack", "name"))
    ]
    return [_warning(item) for item in same]


def _warning(item: DiscoveredCluster) -> str:
    since = f" since {moment(item.since)}" if item.since else ""
    cluster = item.cluster
    return (
        f"another cluster of this project, stack and name exists: {cluster['id']}, created by {cluster['owner'] or 'unknown'}"
        f"{since}. It is not changed. To take it over instead of creating a second one, set `adopt` to {cluster['id']}; to "
        f"remove it, use `tfdeploy ls --leftovers --delete --cluster {cluster['id']}`"
    )
