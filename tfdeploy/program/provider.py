"""The component for programs in other languages: Pulumi's plugin `pulumi-resource-tfdeploy`."""

import inspect
import json
import sys
from collections.abc import Mapping
from functools import partial
from importlib.metadata import metadata
from typing import Any

import pulumi
from pulumi.errors import InputPropertiesError, InputPropertyError
from pulumi.provider import ConstructResult, main
from pulumi.provider.experimental.analyzer import ComponentDefinition, PropertyDefinition, TypeDefinition
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError
from pulumi.runtime.stack import wait_for_rpcs

from ..backends.stack_config import plain_values
from ..cluster import TensorFlowCluster
from ..registry import versions
from ..report.update_exit_code import failure_of
from ..spec.arg_docs import CLASSES, described
from .plugin_exit import follow_engine

NAME = "tfdeploy"
DISTRIBUTION = "pulumi-tfdeploy"

REPOSITORY = "https://example.com/tfdeploy/tfdeploy"
"""The address of the repository, which has no public one yet: nothing is there. What needs an address takes it from here."""

KEYWORDS = ("kind/component", "category/infrastructure")
"""By which Pulumi's registry sorts packages."""

_STALE = "The stack's outputs are still those of the update before this one; `TFDEPLOY_WAIT=0 pulumi up` records those of this run."


class Package(ComponentProvider):
    """`TensorFlowCluster`, with the type that it has in Python programs."""

    def __init__(self) -> None:
        super().__init__([TensorFlowCluster], NAME, version=versions()[DISTRIBUTION])
        schema = {**_about(), **json.loads(self.schema or "{}")}
        _describe_arguments(schema)
        self.schema = json.dumps(_dedented(schema))

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        self._refuse_outputs(inputs, self._component_defs["TensorFlowCluster"].inputs, "")
        try:
            result = super().construct(name, resource_type, plain_values(inputs), options)
            return ConstructResult(result.urn, {**result.state, "state": _checked(name, result.state["state"])})
        except ComponentInitError as error:
            if isinstance(error.inner, pulumi.RunError):
                # The user's mistake is reported without a traceback.
                raise InputPropertiesError(str(error.inner), []) from None
            raise

    def map_input_properties(
        self,
        inputs: Any,
        properties: dict[str, PropertyDefinition],
        mapping: dict[str, str],
        component_name: str,
        property_path: str,
    ) -> Any:
        """The inputs by their names in Python. The base class converts integers and enums, and fails with an Output of one."""
        outputs = {key: value for key, value in inputs.items() if isinstance(value, pulumi.Output) and key in mapping}
        others = {key: value for key, value in inputs.items() if key not in outputs}
        mapped = super().map_input_properties(others, properties, mapping, component_name, property_path)
        return {**mapped, **{mapping[key]: output for key, output in outputs.items()}}

    def get_state(self, instance: pulumi.ComponentResource, component_def: ComponentDefinition) -> dict[str, Any]:
        """The outputs by their names in the schema. The base class does not rename inside lists."""
        state = super().get_state(instance, component_def)
        for key, definition in component_def.outputs.items():
            if key in state and definition.items and definition.items.ref:
                rename = partial(self._renamed, self._type_of(definition.items))
                state[key] = pulumi.Output.from_input(state[key]).apply(rename)
        return state

    def _renamed(self, definition: TypeDefinition, rows: list[dict[str, Any]]) -> list[Any]:
        return [self.map_complex_output(row, definition) for row in rows]

    def _type_of(self, definition: PropertyDefinition) -> TypeDefinition:
        return self._type_defs[(definition.ref or "").rpartition(":")[2]]

    def _refuse_outputs(self, inputs: Any, properties: Mapping[str, PropertyDefinition], path: str) -> None:
        """Refuse a group that is an Output as a whole: the base class would replace it by an empty one.

        Raises:
            InputPropertyError: there is such a group.
        """
        for key, definition in properties.items():
            members = definition.additional_properties or definition
            if (
                inputs.get(key) is None
                or not members.ref
                or ":index:" not in members.ref
                or self._type_of(members).enum
            ):
                continue
            groups = {f"{path}{key}": inputs[key]}
            if members is not definition and isinstance(inputs[key], dict):
                groups = {f"{path}{key}.{name}": group for name, group in inputs[key].items()}
            for name, group in groups.items():
                if not isinstance(group, dict):
                    reason = (
                        f"{name}: an Output or a secret is not valid for a whole group. Set its members one by one."
                    )
                    raise InputPropertyError(name, reason)
                self._refuse_outputs(group, self._type_of(members).properties, f"{name}.")


def _about() -> dict[str, Any]:
    """What the schema has about the package, from the metadata of the distribution."""
    about = metadata(DISTRIBUTION)
    return {
        "description": about["Summary"],
        "keywords": [*about["Keywords"].split(","), *KEYWORDS],
        "homepage": REPOSITORY,
        "repository": REPOSITORY,
        "license": about["License-Expression"],
        "publisher": about["Author"],
    }


def _checked(cluster: str, state: Any) -> pulumi.Output[Any]:
    """The state of the run; it fails the creation of the component where this update fails by that run."""

    async def check(state: Any) -> Any:
        if sentence := failure_of(cluster):
            await wait_for_rpcs(await_all_outstanding_tasks=False)  # the state of the stack has the component's outputs
            raise InputPropertiesError(f"{sentence} {_STALE}", [])
        return state

    return pulumi.Output.from_input(state).apply(check)


def _describe_arguments(schema: dict[str, Any]) -> None:
    """Add the texts of the arguments, with their defaults. Those are not the schema's `default`: then the generated code would pass
    them as arguments, which override the stack's configuration."""
    (resource,) = schema["resources"].values()
    types = {
        key.rpartition(":")[2]: definition["properties"]
        for key, definition in schema["types"].items()
        if "properties" in definition
    }
    types["TensorFlowClusterArgs"] = resource["inputProperties"]
    for prefix, (owner, _) in CLASSES.items():
        properties = {_python_name(key): value for key, value in types[owner].items()}
        for row in described(prefix):
            default = f"\n\nDefault: `{row.default}`." if row.default else ""
            properties[row.name]["description"] = row.text + default


def _python_name(name: str) -> str:
    """`exitCode` in Python: `exit_code`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _dedented(value: Any) -> Any:
    """The schema with descriptions as in Python 3.13, on every version: without the indentation of the code."""
    if isinstance(value, dict):
        return {
            key: inspect.cleandoc(item) if key == "description" and isinstance(item, str) else _dedented(item)
            for key, item in value.items()
        }
    return [_dedented(item) for item in value] if isinstance(value, list) else value


def run() -> None:
    """Serve the Pulumi engine that started this process."""
    follow_engine()
    main(Package(), sys.argv[1:])


if __name__ == "__main__":
    run()
