"""Generates tfdeploy/args.py, docs/reference.md, docs/command.md, docs/json.md and package/schema.json: `python -m tools.reference`."""

import json
import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from inspect import getdoc
from pathlib import Path
from unittest import mock

from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import ReachedMetric, RunResult
from tfdeploy.agent.model.task_dump import PythonThread, TaskDump
from tfdeploy.cli.command_table import ALL, EXIT_CODES, VERBS, Verb
from tfdeploy.cli.parser import Parser, add_common_options, command_parser
from tfdeploy.cluster import TensorFlowCluster
from tfdeploy.outputs import CostSummary, MachineRow, TaskRow
from tfdeploy.program.provider import Package
from tfdeploy.spec.arg_docs import CLASSES, attributes, rows
from tools import arguments
from tools.documents import (
    ClusterIdentity,
    ClusterOutputs,
    DumpedTask,
    EventSentence,
    Exit,
    ListedCluster,
    ResultReason,
    RunDocument,
    StepProgress,
)
from tools.wrap import WIDTH
from tools.wrap import wrapped as wrapped_paragraphs

ROOT = Path(__file__).parent.parent
ARGS = ROOT / "tfdeploy" / "args.py"
TARGET = ROOT / "docs" / "reference.md"
COMMAND = ROOT / "docs" / "command.md"
JSON = ROOT / "docs" / "json.md"
SCHEMA = ROOT / "package" / "schema.json"

ROWS = {"tasks": TaskRow, "machines": MachineRow}
"""Outputs that are lists to the type of their items."""

JSON_HEAD = """\
# JSON

Generated from the code by `python -m tools.reference`; a test compares.

With `--json` every command prints its result as JSON. These are the documents of the commands that scripts use most.
`status`, `ls`, `runs` and `events` print a list of them; `events --follow` prints each in a line; `dump` prints
`{"tasks": [...]}`. Members may be added. [Exit codes](command.md#exit-codes) are those of the commands.
"""

DOCUMENTS: dict[str, tuple[type, ...]] = {
    "`tfdeploy status`": (ClusterIdentity, ClusterOutputs),
    "`tfdeploy ls`": (ClusterIdentity, ListedCluster),
    "`tfdeploy runs`": (RunDocument,),
    "`tfdeploy events`": (Event, EventSentence),
    "`result` of an event": (RunResult, ResultReason),
    "An item of `reached`": (ReachedMetric,),
    "`exit` of an event or a result": (Exit,),
    "`tfdeploy dump`": (DumpedTask,),
    "`progress` of a dumped task": (StepProgress,),
    "`dump` of a dumped task": (TaskDump,),
    "An item of `python`": (PythonThread,),
}
"""The title of each document and the types with its members."""

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


COMMAND_HEAD = """\
# `tfdeploy`

Inspect and control TensorFlow clusters: `tfdeploy COMMAND [OPTIONS]`.

Options without a command:

- `--help`, `-h`, `help`: List the commands. `help COMMAND` is the same as `COMMAND --help`.
- `--version`, `version`: Print the version.
- `--install-completion [SHELL]`: Have bash, zsh or fish complete commands, options, tasks, clusters and stacks.
- `--show-completion [SHELL]`: Print the script of that completion.
- `--debug`, with any command: Print a traceback on errors.

## Common options

Those that a command has may stand before it too: `tfdeploy -C FOLDER status`. `-o json` is where `--json` is.

{}

A command has all of them but `-o wide`, unless its section lists others.
"""

CODES = """\
## Exit codes

| code | meaning |
|---|---|
{}

Generated from the code by `python -m tools.reference`; a test compares.
"""


def outputs(title: str, *owners: type) -> str:
    """A heading, the docstring of the last class, and a list of the attributes of all."""
    described = {name: row for owner in owners for name, row in attributes(owner).items()}
    items = [f"- `{name}` (`{_modern(kind)}`): {text}" for name, (kind, text) in described.items()]
    return _section(title, getdoc(owners[-1]) or "", items)


def _modern(kind: str) -> str:
    """A type of Python 3.8 as later versions write it."""
    return re.sub(r"Optional\[(.+)\]", r"\1 | None", kind).replace("List[", "list[").replace("Ended", "Exit")


def arguments_of(prefix: str) -> str:
    """A heading, the class's docstring, and a list of its arguments with their defaults."""
    name, owner = CLASSES[prefix]
    items = [f"- `{row.name}` (`{row.type}`{_default(row.default)}): {row.text}" for row in rows(prefix)]
    if prefix.count(".") == 3:  # settings of a job, which the group of the cluster describes
        items = [f"- {', '.join(names)}: {text}" for text, names in _grouped(prefix).items()]
    return _section(f"`{prefix.rstrip('.')}`: {name}" if prefix else name, getdoc(owner) or "", items)


def _grouped(prefix: str) -> dict[str, list[str]]:
    """What a setting of one job does to that of the cluster, to the names of these settings."""
    group, effects = prefix.split(".")[2], dict[str, list[str]]()
    for row in rows(prefix):
        effect = row.text.partition("; ")[2]
        effects.setdefault(f"As in the group `{group}`; {effect}", []).append(f"`{row.name}`")
    return effects


def _default(value: str) -> str:
    return f", default `{value}`" if value else ""


def _section(title: str, about: str, items: Sequence[str]) -> str:
    return "\n".join([f"## {title}", "", *(wrapped_paragraphs(part) for part in (about, "", *items)), ""])


def reference() -> str:
    """The whole page."""
    return "\n".join(
        [
            HEAD,
            outputs("TensorFlowCluster: outputs", TensorFlowCluster),
            *(outputs(f"{owner.__name__}: an item of `{output}`", owner) for output, owner in ROWS.items()),
            outputs("CostSummary: `cost`", CostSummary),
            *map(arguments_of, CLASSES),
            TASK,
        ]
    )


def command() -> str:
    """The page of the `tfdeploy` command, from its help."""
    codes = "\n".join(f"| {code} | {meaning} |" for code, (_, meaning) in EXIT_CODES.items())
    with mock.patch.dict("os.environ", COLUMNS=str(WIDTH + 2)):
        return "\n".join(
            [COMMAND_HEAD.format("\n".join(_common_options())), *map(_command_section, VERBS), CODES.format(codes)]
        )


def _command_section(verb: Verb) -> str:
    """The help of a command, without what the section on common options has."""
    usage, *about = command_parser(verb, verb.name)[0].format_help().split("\n\n")
    prose = [part for part in about if not part.startswith(("positional arguments:", "options:"))]
    items = [item for part in about if part not in prose for item in _items(part)]
    own = [item for item in items if item not in _common_options()]
    names = [f"`--{name}`" for name in verb.common] + ["`-o wide`"] * verb.wide
    if (verb.common, verb.wide) != (ALL, False):
        own.append(f"- [Common options](#common-options): {', '.join(names) or 'none'}.")
    lines = [*(line for part in prose for line in (part, "")), f"`{usage.removeprefix('usage: ')}`", ""]
    return "\n".join([f"## `tfdeploy {verb.name}`", "", *lines, *own, *[""] * bool(own)])


@cache
def _common_options() -> list[str]:
    """The options that many commands have, once with each form of `--output`."""
    items: list[str] = []
    for wide in (False, True):
        parser = Parser("tfdeploy", "")
        add_common_options(parser, ALL, wide)
        items += _items(parser.format_help().partition("options:\n")[2])
    return [*dict.fromkeys(items)]


def _items(rows: str) -> list[str]:
    """The rows of a help as items of a list: two spaces, the names, and the text, which may continue on the next line."""
    found = re.findall(r"(?m)^  (\S.*?)(?: {2,}|\n {8,})(.*(?:\n {8,}.*)*)", rows)
    return [wrapped_paragraphs(f"- `{names}`: {' '.join(text.split())}") for names, text in found]


def json_page() -> str:
    """The page of what `--json` prints."""
    return "\n".join([JSON_HEAD, *(outputs(title, *owners) for title, owners in DOCUMENTS.items())])


def schema() -> str:
    """The schema of the component, for other languages."""
    return json.dumps(json.loads(Package().schema or ""), indent=2) + "\n"


if __name__ == "__main__":
    if ARGS.read_text() != arguments.module():  # the schema is made from what is imported of it
        ARGS.write_text(arguments.module())
        os.execv(sys.executable, [sys.executable, "-m", "tools.reference"])
    for page, text in ((TARGET, reference()), (COMMAND, command()), (JSON, json_page()), (SCHEMA, schema())):
        page.write_text(text)
        sys.stdout.write(f"wrote {page.relative_to(ROOT)}\n")
