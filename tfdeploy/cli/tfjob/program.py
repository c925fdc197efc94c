"""The text of a program with clusters that were TFJobs. Pure."""

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...units import wrapped
from .conversion import Conversion

_WIDTH = 100
_INDENT = "    "


def program(conversions: Sequence[Conversion], other_notes: Sequence[str] = ()) -> str:
    """A program of Pulumi."""
    names = ", ".join(conversion.name for conversion in conversions)
    lines = [f'"""Made from the TFJob {names} by `tfdeploy import-tfjob`."""', "", "import pulumi", ""]
    lines += ["from tfdeploy import TensorFlowCluster", ""]
    lines += _comment("Of other manifests in the file:", other_notes)
    for conversion in conversions:
        lines += _comment("What has no counterpart:", conversion.notes) + _cluster(conversion)
    return "\n".join(lines) + "\n"


def _comment(title: str, notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    texts = [line for note in notes for line in wrapped(f"- {note}", _WIDTH - 2)]
    return [f"# {title}", *(f"# {text}" if text.startswith("- ") else f"#   {text.strip()}" for text in texts)]


def _cluster(conversion: Conversion) -> list[str]:
    variable = re.sub(r"\W", "_", conversion.name.lower())
    variable += "_" * keyword.iskeyword(variable)
    secrets = [f'{json.dumps(name)}: pulumi.Config().require_secret("{name}")' for name in conversion.secrets]
    return [
        f"{variable} = TensorFlowCluster(",
        f"{_INDENT}{literal(conversion.name)},",
        *(f"{_INDENT}{name}={literal(value, _INDENT, len(name) + 6)}," for name, value in conversion.args.items()),
        *([f"{_INDENT}secrets={{", *(f"{_INDENT * 2}{line}," for line in secrets), f"{_INDENT}}},"] if secrets else []),
        ")",
        f'pulumi.export("{conversion.name}", {variable}.state)',
    ]


def literal(value: Any, indent: str = "", used: int = 0) -> str:
    """A value as Python, on several lines where it is longer than one; `used` columns are taken on the first."""
    if isinstance(value, Mapping):
        items = [f"{json.dumps(key)}: {literal(item, indent + _INDENT, len(key) + 10)}" for key, item in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, (list, tuple)):
        items = [literal(item, indent + _INDENT, 4) for item in value]
        opening, closing = "[", "]"
    else:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    line = f"{opening}{', '.join(items)}{closing}"
    if "\n" not in line and len(line) + len(indent) + used <= _WIDTH:
        return line
    rows = "".join(f"{indent}{_INDENT}{item},\n" for item in items)
    return f"{opening}\n{rows}{indent}{closing}"
