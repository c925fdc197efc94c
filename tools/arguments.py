"""Generates tfdeploy/args.py from the declarations in tfdeploy/spec/: `python -m tools.reference` calls it."""

import re
from collections.abc import Iterator
from textwrap import indent

from tfdeploy.spec.arg_docs import CLASSES, NAMES, attributes
from tfdeploy.spec.argument import DATA, GROUP, MAPPING, NAMED_GROUPS, TEXTS, Argument, Choices, arguments, names
from tfdeploy.spec.jobs import JobSpec, ServiceSpec
from tfdeploy.units import wrapped

HEAD = '''\
"""The arguments of a `TensorFlowCluster`, each with the first sentence of its text: docs/reference.md has all of it.

Outputs of other resources are valid in all of them; groups, such as `ec2`, are mappings with members that may be Outputs.
Generated from the declarations in `spec/` by `python -m tools.reference`; a test compares.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import pulumi

# Pulumi's component analyzer takes enums and no `Literal`; type checkers take the plain strings that people write.
if TYPE_CHECKING:
'''

TYPES = {
    TEXTS: "pulumi.Input[Sequence[pulumi.Input[str]]]",
    MAPPING: "pulumi.Input[Mapping[str, pulumi.Input[str]]]",
    DATA: "pulumi.Input[Mapping[str, Any]]",
}
"""The kind of an argument to its annotation; others are plain types."""

WIDTH = 125


def module() -> str:
    """The whole file."""
    declared = [argument for _, owner in CLASSES.values() for argument in arguments(owner).values()]
    choices = {argument.choices.name: argument.choices for argument in declared if argument.choices}
    literals = [f"    {name} = Literal{[*few.values]}\n".replace("'", '"') for name, few in choices.items()]
    enums = ["else:\n", *("\n" + indent(enum(few), "    ") for few in choices.values())]
    typed = ("\n\n" + typed_dict(prefix) for prefix in dict.fromkeys(in_order("")))
    return "".join([HEAD, *literals, *enums, *typed])


def enum(few: Choices) -> str:
    """The type of an argument that takes one of a few values."""
    members = [f'    {value.upper().replace("-", "_")} = "{value}"\n' for value in few.values]
    return "".join([f'class {few.name}(StrEnum):\n    """{few.about}"""\n\n', *members])


def in_order(prefix: str) -> Iterator[str]:
    """The prefixes of arguments, each after those of its groups; some more than once."""
    prefixes = {owner: group for group, (_, owner) in CLASSES.items()}
    owner = CLASSES[prefix][1]
    if owner.__base__ in prefixes:
        yield from in_order(prefixes[owner.__base__])
    for argument in arguments(owner).values():
        if argument.members:
            yield from in_order(prefixes[argument.members])
    yield prefix


def typed_dict(prefix: str) -> str:
    """One class. A group of the cluster has what that of a job has, and more."""
    name, owner = CLASSES[prefix]
    base = JobSpec if owner is ServiceSpec else owner.__base__ or object
    base_name = NAMES.get(base, "TypedDict")
    inherited = () if base_name == "TypedDict" else names(base)
    lines = [f"class {name}({base_name}, total=False):", f'    """{owner.__doc__}"""', ""]
    texts = attributes(owner)
    for key in (key for key in names(owner) if key not in inherited):
        first, *_ = re.split(r"(?<=\.) (?=[A-Z`\"])", texts[key][1])
        text = "\n    ".join(wrapped(first, WIDTH))
        lines += [f"    {key}: {annotation(arguments(owner)[key])}", f'    """{text}"""']
    return "\n".join([*lines, ""])


def annotation(argument: Argument) -> str:
    """The type for users, who may give an Output of each value."""
    if argument.members:
        name = NAMES[argument.members]
        return {GROUP: name, NAMED_GROUPS: f"dict[str, {name}]"}[argument.kind]
    plain = argument.choices.name if argument.choices else argument.kind
    return TYPES.get(argument.kind, f"pulumi.Input[{plain}]")
