"""The three resources that a cluster is made of in Pulumi's eyes. Thin and stateless: a backend's hands do the work.

`Sweeper` is made first and deleted last, `Task` is one task, `Run` is what they run. Their providers are named in the state by
this module's name: never rename it.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from . import registry
from .backends.base import Backend, Cluster, Keep, RunProps, TaskProps, as_given, load

Props = dict[str, Any]


def _hands(props: Mapping[str, Any]) -> Backend:
    return load(props["cluster"]["backend"])


def _changes(olds: Props, news: Props, replaces: Sequence[str]) -> DiffResult:
    old, new = as_given(olds), as_given(news)
    changed = [key for key in new if new[key] is not None and new[key] != old.get(key)]
    return DiffResult(
        changes=bool(changed), replaces=[key for key in changed if key in replaces], delete_before_replace=True
    )


class SweeperProvider(ResourceProvider):
    """Makes the cluster's token; takes away what the cluster left, however it came to be left."""

    serialize_as_secret_always = False

    def create(self, props: Props) -> CreateResult:
        """Nothing but the token: there is nothing to be left behind when this is cut short."""
        return CreateResult(props["cluster"]["name"], {**props, "token": secrets.token_hex(16)})

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """Another place is another cluster."""
        return _changes(olds, news, ["cluster"])

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        """Stop at once what is no longer listed: Pulumi's own deletes come after the program has ended."""
        _hands(news).sweep(news["cluster"], olds["token"], news["hostnames"])
        return UpdateResult({**news, "token": olds["token"]})

    def delete(self, _id: str, props: Props) -> None:
        """Remove all that is still there."""
        said = _hands(props).clear(cast(Cluster, props["cluster"]), props["token"], _kept(props))
        registry.end(props["cluster"])
        if said:
            print(f"{props['cluster']['name']}: {said}")


def _kept(props: Props) -> Keep:
    """What is asked for; a state from before there was a choice has less."""
    return {"volumes": bool(props.get("keep_volumes")), "record": True, **props.get("keep", {})}


class TaskProvider(ResourceProvider):
    """One task on the engine."""

    serialize_as_secret_always = False

    def create(self, props: Props) -> CreateResult:
        """Make it stand, or adopt the one that stands."""
        plain = cast(TaskProps, as_given(props))
        return CreateResult(plain["hostname"], {**props, **_hands(plain).stand(plain)})

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """All but its name and its cluster can be changed in place."""
        return _changes(olds, news, ["cluster", "hostname"])

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        """Give it its new limits."""
        plain = cast(TaskProps, as_given(news))
        return UpdateResult({**news, **_hands(plain).change(cast(TaskProps, as_given(olds)), plain)})

    def read(self, id_: str, props: Props) -> ReadResult:
        """Gone when the engine no longer has it."""
        plain = cast(TaskProps, as_given(props))
        return ReadResult(id_, props) if _hands(plain).standing(plain) else ReadResult(None, {})

    def delete(self, _id: str, props: Props) -> None:
        """Take it away."""
        plain = cast(TaskProps, as_given(props))
        _hands(plain).take_away(plain)


class RunProvider(ResourceProvider):
    """What the tasks run."""

    serialize_as_secret_always = False

    def create(self, props: Props) -> CreateResult:
        """Give it to the keeper."""
        plain = cast(RunProps, as_given(props))
        return CreateResult(plain["run"]["id"], {**props, **_hands(plain).give(plain)})

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """A new run is an update, never a replacement: the keeper stays."""
        return _changes(olds, news, ["cluster"])

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        """Give the new one to the keeper."""
        plain = cast(RunProps, as_given(news))
        return UpdateResult({**news, **_hands(plain).give(plain)})

    def read(self, id_: str, props: Props) -> ReadResult:
        """Gone when the keeper is, or has another run."""
        plain = cast(RunProps, as_given(props))
        return ReadResult(id_, props) if _hands(plain).given(plain) else ReadResult(None, {})

    def delete(self, _id: str, props: Props) -> None:
        """Stop the job."""
        plain = cast(RunProps, as_given(props))
        _hands(plain).dismiss(plain)


class Sweeper(Resource, module="tfdeploy", name="Sweeper"):
    """Made first, deleted last."""

    token: pulumi.Output[str]

    def __init__(
        self, name: str, cluster: Cluster, hostnames: Sequence[str], keep: Keep, opts: pulumi.ResourceOptions
    ) -> None:
        props = {"cluster": cluster, "hostnames": list(hostnames), "keep": dict(keep), "token": None}
        secret = pulumi.ResourceOptions(additional_secret_outputs=["token"])
        super().__init__(SweeperProvider(), name, props, pulumi.ResourceOptions.merge(opts, secret))


class Task(Resource, module="tfdeploy", name="Task"):
    """One task of a cluster."""

    stood: pulumi.Output[str]

    def __init__(self, name: str, props: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(TaskProvider(), name, {**props, "stood": None}, opts)


class Run(Resource, module="tfdeploy", name="Run"):
    """What a cluster runs."""

    given: pulumi.Output[str]

    def __init__(self, name: str, props: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(RunProvider(), name, {**props, "given": None, "train_dir": None}, opts)
