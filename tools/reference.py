"""Generates docs/reference.md, docs/command.md and package/schema.json from the code: `python -m tools.reference`."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from typer import Context
from typer.cli import get_docs_for_click
from typer.core import TyperGroup
from typer.main import get_command

from tfdeploy.cli.exit_codes import EXIT_CODES
from tfdeploy.cli.typer_app import app
from tfdeploy.provider import Package
from tfdeploy.spec.arg_docs import CLASSES, docstrings, rows
from tfdeploy.units import wrapped
from tools.wrap import WIDTH
from tools.wrap import wrapped as wrapped_paragraphs

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "reference.md"
COMMAND = ROOT / "docs" / "command.md"
SCHEMA = ROOT / "package" / "schema.json"

ROWS = {"tasks": "TaskRow", "machines": "MachineRow"}
"""Outputs that are lists to the type of their items."""

HEAD = """\
# Reference

Generated from the code by `python -m tools.reference`; a test compares.

Durations are strings such as `"90s"`, `"10m"`, `"1h30m"`, `"2d"` or `"0"`, or numbers of seconds; sizes such as
`"512MiB"` or `"2GiB"`. Every argument can also be set by `pulumi config set tfdeploy:NAME VALUE` (lists and mappings as
JSON, or with `--path 'tfdeploy:ec2.instance_type'`). Mappings are merged key by key; the program's values override the
configuration's. The groups `container`, `docker`, `ec2` and `kubernetes` are used only on the backends that they are for: a program
can set all of them. Arguments that are not valid raise `pulumi.RunError` before any resource is created.
"""

TASK = """\
## Environment of a task

- `TF_CONFIG`: cluster (`chief` or `master`, `ps`, `worker`), task (type, index), `environment: cloud`; not set for a
  lone task.
- `TFDEPLOY_HOSTNAME`, `TFDEPLOY_ADDRESS`: the task's hostname (`worker-0`) and `host:port`.
- `TFDEPLOY_JOB_NAME`, `TFDEPLOY_TASK_INDEX`, `TFDEPLOY_PS_HOSTS`, `TFDEPLOY_WORKER_HOSTS`: the four flags.
- `TFDEPLOY_DATA_DIR`, `TFDEPLOY_TRAIN_DIR`: the folders, or URLs; `train_dir` is the run's subfolder.
- `TFDEPLOY_CONTEXT`: `context` as JSON text.
- `TFDEPLOY_SECRETS`: the folder with a file for each secret.
- `TFDEPLOY_RUN`: the run's id.
- `CUDA_VISIBLE_DEVICES`: the task's GPUs; empty without GPUs.
- `PYTHONUNBUFFERED`: `1`.
- `GRPC_FAIL_FAST`: `use_caller`, as TensorFlow's guide to parameter servers requires.

The working directory is a copy of `code`. Variables of `env` override these.

## States

Task: `scheduled`, `starting`, `waiting for <peer>`, `running`, `succeeded`, `failed (exit 3)`, `killed (SIGKILL)`,
`out of memory`, `restarting in 8 s (2 of 5)`, `interrupted`, `stopped (run finished)`, `lost`, `unreachable since …`.
Run: `starting`, `running`, `succeeded`, `failed`, `stopped`, `unknown`.
"""


COMMON = {
    "* `-C, --cwd <dir>`: Folder of the Pulumi program.": "-C",
    "* `-s, --stack <str>`: Stack. Default: the selected stack.": "-s",
    "* `-c, --cluster <str>`: Cluster, or its id. Needed if the stack has more than one.": "-c",
    "* `--json`: Print JSON.": "--json",
    "* `-o, --output <json>`: `json` is the same as --json.": "-o json",
    "* `-o, --output <wide|json>`: `wide` prints all columns in full, `json` is the same as --json.": "-o wide|json",
    "* `-h, --help`: Show this message and exit.": "-h",
}
"""Options that many commands have, to what their sections show of them."""

USUAL = ["-C", "-s", "-c", "--json", "-o json", "-h"]
"""What a command has of them, unless its section has a list."""

COMMON_OPTIONS = """\
## Common options

A command has all of them but `-o wide`, unless its section lists others.

{}
"""

CODES = """\
## Exit codes

| code | meaning |
|---|---|
{}

Generated from the code by `python -m tools.reference`; a test compares.
"""


def outputs(title: str, module: str, name: str) -> str:
    """A heading, the class's docstring, and a list of its attributes."""
    (_, _, about), *attributes = docstrings(module, name)
    items = [f"- `{attribute}` (`{kind}`): {text}" for attribute, kind, text in attributes]
    return _section(title, about, items)


def arguments(prefix: str, name: str) -> str:
    """A heading, the class's docstring, and a list of its arguments with their defaults."""
    about = docstrings("args", name)[0][2]
    inherited = rows("JobArgs") if name == "ServiceArgs" else ()
    own = [row for row in rows(name) if row not in inherited]
    items = [f"- `{row.name}` (`{row.type}`{_default(row.default)}): {row.text}" for row in own]
    return _section(f"`{prefix.rstrip('.')}`: {name}" if prefix else name, about, items)


def _default(value: str) -> str:
    return f", default `{value}`" if value else ""


def _section(title: str, about: str, items: Sequence[str]) -> str:
    return "\n".join([f"## {title}", "", *(wrapped_paragraphs(part) for part in (about, "", *items)), ""])


def reference() -> str:
    """The whole page."""
    return "\n".join(
        [
            HEAD,
            outputs("TensorFlowCluster: outputs", "cluster", "TensorFlowCluster"),
            *(outputs(f"{name}: an item of `{output}`", "outputs", name) for output, name in ROWS.items()),
            outputs("CostSummary: `cost`", "outputs", "CostSummary"),
            *(arguments(prefix, name) for prefix, name in CLASSES.items()),
            TASK,
        ]
    )


def command() -> str:
    """The page of the `tfdeploy` command, from its help."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    group.epilog = None  # the exit codes, which are a table here
    group.commands = {name: verb for name, verb in group.commands.items() if not verb.hidden}
    context = Context(group, info_name="tfdeploy", **group.context_settings)
    pages = get_docs_for_click(obj=group, ctx=context, name="tfdeploy")
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    text = "\n".join(map(_wrapped_prose, pages.rstrip().splitlines()))
    text = re.sub(r"\*\*Usage\*\*:\n\n```console\n\$ (.*)\n```", r"Usage: `\1`", text)
    text = re.sub(r"Usage: `tfdeploy [\w-]+ \[OPTIONS\]`\n\n", "", text)
    head, *sections = re.split(r"(?m)^(?=## )", re.sub(r"\*\*Commands\*\*:\n\n(\* .*\n)*\n", "", text))
    verbs = "".join(map(_without_common_options, sections)).rstrip()
    return "\n".join([head + COMMON_OPTIONS.format("\n".join(COMMON)), verbs, "", CODES.format(codes)])


def _without_common_options(section: str) -> str:
    """The section of a command, with one line for its common options."""
    lines = section.splitlines()
    common = [COMMON[line] for line in lines if line in COMMON]
    own = "\n".join(line for line in lines if line not in COMMON).rstrip()
    if common != USUAL:
        own += "\n" * own.endswith("**Options**:")
        own += f"\n* [Common](#common-options): {', '.join(f'`{name}`' for name in common)}."
    return own.removesuffix("**Options**:").rstrip() + "\n\n"


def _wrapped_prose(line: str) -> str:
    return line if line.startswith(("*", "$", "|", "#")) else "\n".join(wrapped(line, WIDTH))


def schema() -> str:
    """The schema of the component, for other languages."""
    return json.dumps(json.loads(Package().schema or ""), indent=2) + "\n"


if __name__ == "__main__":
    for page, text in ((TARGET, reference()), (COMMAND, command()), (SCHEMA, schema())):
        page.write_text(text)
        sys.stdout.write(f"wrote {page.relative_to(ROOT)}\n")
