"""Writes docs/reference.md, docs/command.md and package/schema.json from the code itself: `python -m tools.reference`."""

import json
import sys
from pathlib import Path

from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

from tfdeploy.cli.main import app
from tfdeploy.documented import documented
from tfdeploy.plugin import Package

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "reference.md"
COMMAND = ROOT / "docs" / "command.md"
SCHEMA = ROOT / "package" / "schema.json"

HEAD = """\
# Reference

Made from the code by `python -m tools.reference`; a test compares.

Durations are texts such as `"90s"`, `"10m"`, `"1h30m"` or `"0"` (a number of seconds will do); sizes such as `"512MiB"` or `"2GiB"`.
Every argument may be given by `pulumi config set tfdeploy:NAME VALUE` instead (lists and mappings as JSON, or by `--path`); what the
program gives wins. What is refused is refused before anything is made, by `pulumi.RunError`, in one sentence.
"""

TASK = """\
## What a task finds

| variable | what |
|---|---|
| `TF_CONFIG` | cluster (`chief` or `master`, `ps`, `worker` with gpu_workers), task (type, index), `environment: cloud`; no evaluator |
| `TFDEPLOY_HOSTNAME`, `TFDEPLOY_ADDRESS` | its own stable name (`worker-0`) and `host:port` |
| `TFDEPLOY_JOB_NAME`, `TFDEPLOY_TASK_INDEX`, `TFDEPLOY_PS_HOSTS`, `TFDEPLOY_WORKER_HOSTS` | the four flags |
| `TFDEPLOY_DATA_DIR`, `TFDEPLOY_TRAIN_DIR` | the folders, or URLs; `train_dir` is this run's own |
| `TFDEPLOY_CONTEXT` | `context` as JSON text |
| `TFDEPLOY_SECRETS` | the folder with a file for each secret |
| `TFDEPLOY_RUN` | the run's id |
| `CUDA_VISIBLE_DEVICES` | the task's own GPUs; empty for none |
| `PYTHONUNBUFFERED` | `1` |
| `GRPC_FAIL_FAST` | `use_caller`, as TensorFlow's guide to parameter servers asks |

Its working directory is its own copy of `code`. What `env` names comes over these.

## States

Task: `scheduled`, `starting`, `waiting for <peer>`, `running`, `succeeded`, `failed (exit 3)`, `killed (SIGKILL)`, `out of memory`,
`restarting in 8 s (2 of 5)`, `interrupted`, `stopped (job finished)`, `lost`, `unreachable since …`.
Job: `starting`, `running`, `succeeded`, `failed`, `stopped`, `unknown`.
"""


CODES = """\
## Exit codes

| code | means |
|---|---|
| 0 | yes, or done |
| 1 | the job, or what was asked about, failed |
| 2 | wrong usage |
| 3 | nothing there of that name |
| 4 | out of reach |
| 5 | not over within `--timeout` |
| 130 | ended by Ctrl-C |

Made from the code by `python -m tools.reference`; a test compares.
"""


def section(title: str, module: str, name: str) -> str:
    """A heading, the class's docstring, and a table of its attributes."""
    (_, _, about), *rows = documented(module, name)
    lines = [f"| `{row}` | `{kind}` | {_cell(text)} |" for row, kind, text in rows]
    return "\n".join([f"## {title}", "", about, "", "| name | type | meaning |", "|---|---|---|", *lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def reference() -> str:
    """The whole page."""
    return "\n".join(
        [
            HEAD,
            section("TensorFlowCluster: outputs", "cluster", "TensorFlowCluster"),
            section("TensorFlowClusterArgs", "arguments", "TensorFlowClusterArgs"),
            section("JobArgs", "arguments", "JobArgs"),
            section("RestartArgs", "arguments", "RestartArgs"),
            TASK,
        ]
    )


def command() -> str:
    """The page of the `tfdeploy` command, as its own help has it."""
    found = get_command(app)
    pages = get_docs_for_click(obj=found, ctx=Context(found, info_name="tfdeploy"), name="tfdeploy")
    return f"{pages.rstrip()}\n\n{CODES}"


def schema() -> str:
    """What other languages know of the component."""
    return json.dumps(json.loads(Package().schema or ""), indent=2) + "\n"


if __name__ == "__main__":
    for page, text in ((TARGET, reference()), (COMMAND, command()), (SCHEMA, schema())):
        page.write_text(text)
        sys.stdout.write(f"wrote {page.relative_to(ROOT)}\n")
