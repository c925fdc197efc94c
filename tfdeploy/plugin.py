"""The component for programs in other languages: Pulumi's plugin `pulumi-resource-tfdeploy`."""

import inspect
import json
import sys
from typing import Any

import pulumi
from pulumi.errors import InputPropertiesError
from pulumi.provider import ConstructResult, main
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from .cluster import TensorFlowCluster
from .versions import versions

NAME = "tfdeploy"


class Package(ComponentProvider):
    """`TensorFlowCluster` alone, under the name that its type has in programs in Python."""

    def __init__(self) -> None:
        super().__init__([TensorFlowCluster], NAME, version=versions()["pulumi-tfdeploy"])
        self.schema = json.dumps(_dedented(json.loads(self.schema or "{}")))

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        try:
            return super().construct(name, resource_type, _whole(inputs), options)
        except ComponentInitError as error:
            if isinstance(error.inner, pulumi.RunError):
                # What is refused is the caller's: a sentence, and no traceback.
                raise InputPropertiesError(str(error.inner), []) from None
            raise


def _dedented(value: Any) -> Any:
    """The same with each description as Python 3.13 has docstrings, whichever version runs this: without the code's indentation."""
    if isinstance(value, dict):
        return {
            key: inspect.cleandoc(item) if key == "description" and isinstance(item, str) else _dedented(item)
            for key, item in value.items()
        }
    return [_dedented(item) for item in value] if isinstance(value, list) else value


def _whole(value: Any) -> Any:
    """The same with 2 for 2.0: every number arrives as a float."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def run() -> None:
    """Serve the engine that has started this process."""
    main(Package(), sys.argv[1:])


if __name__ == "__main__":
    run()
