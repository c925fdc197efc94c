"""The resource that makes machines a Swarm. Its provider is named in the state by this module's name: never rename it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from ..base import as_given
from . import forming

Props = dict[str, Any]

_OUTPUTS = ("swarm", "manager")


def _given(props: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for."""
    return {key: value for key, value in as_given(props).items() if key not in _OUTPUTS}


class SwarmProvider(ResourceProvider):
    """Thin and stateless: `forming` does the work."""

    serialize_as_secret_always = False

    def create(self, props: Props) -> CreateResult:
        """Form the Swarm, or take the one that stands."""
        return CreateResult(props["cluster"]["name"], {**props, **self._form(props, [])})

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """Other machines are an update."""
        return DiffResult(changes=_given(olds) != _given(news), replaces=[])

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        """Form it of other machines."""
        return UpdateResult({**news, **self._form(news, olds["members"])})

    def read(self, id_: str, props: Props) -> ReadResult:
        """Gone when the manager has another one."""
        stands = forming.stands(cast(forming.SwarmProps, _given(props)), props["swarm"])
        return ReadResult(id_, props) if stands else ReadResult(None, {})

    def _form(self, props: Props, before: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        stood = {member["instance_id"] for member in before}
        return forming.form(cast(forming.SwarmProps, _given(props)), stood, lambda text: print(text, flush=True))


class Swarm(Resource, module="tfdeploy", name="Swarm"):
    """The Swarm of a cluster's machines."""

    swarm: pulumi.Output[str]
    """Its id: another one is another Swarm, on which nothing stands yet."""

    manager: pulumi.Output[str]
    """The address of its manager, among the machines."""

    def __init__(
        self,
        name: str,
        props: Mapping[str, Any],
        members: Sequence[Mapping[str, Any]],
        opts: pulumi.ResourceOptions,
    ) -> None:
        given = {**props, "members": list(members), "swarm": None, "manager": None}
        super().__init__(SwarmProvider(), name, given, opts)
