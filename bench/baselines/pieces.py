"""A minimal dynamic resource."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider


class PieceProvider(ResourceProvider):
    """Does nothing."""

    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Nothing but an output."""
        return CreateResult(props["name"], {**props, "key": "0123456789abcdef0123456789abcdef"})


class Piece(Resource, module="fleet", name="Piece"):
    """One resource with inputs about as large as those of a task."""

    key: pulumi.Output[str]

    def __init__(self, name: str, props: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(PieceProvider(), name, {**props, "key": None}, opts)
