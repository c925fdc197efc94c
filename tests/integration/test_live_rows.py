"""What people see of a training in Pulumi's own table of resources, in terminals of two sizes."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from tests.integration.conftest import PROGRAM, Project
from tests.verbs import Terminal

TWO = (
    PROGRAM.partition("cluster = ")[0]
    + """
for name in ("one", "two"):
    cluster = TensorFlowCluster(
        name, command=["python", "train.py", name], code="code", workers=1,
        env={"GO": __import__("os").environ["COUNTER"] + "/go"}, metrics={"accuracy": r"accuracy: (\\\\S+)"},
    )
    pulumi.export(name, cluster.metrics["accuracy"])
"""
)

STEPS = """\
import os, pathlib, sys, time
step = {"one": 300, "two": 700}[sys.argv[1]]
print("step", step - 100, "of 1000 loss 0.5", flush=True)
go = pathlib.Path(os.environ["GO"])
while not (go.exists() or go.with_name("more").exists()):  # of two lines that are read at once, there is no speed
    time.sleep(0.05)
print("step", step, "of 1000 loss 0.25", flush=True)
while not go.exists():
    time.sleep(0.05)
print("accuracy: 0.75")
"""

HINT = "progress: `tfdeploy status --watch`"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def begin(project: Project, size: tuple[int, int], *arguments: str) -> Terminal:
    """Pulumi in a terminal of so many rows and columns."""
    project.use_plain_python()
    env = {**project.env, "TERM": "xterm-256color", "PULUMI_DISABLE_CI_DETECTION": "1", "PULUMI_DEBUG_COMMANDS": "true"}
    return Terminal(["pulumi", *arguments, "--stack", project.stack], project.program, env, size)


def rows(terminal: Terminal, name: str) -> list[str]:
    """All that the row of a resource has shown, one after the other."""
    lines = re.split(r"[\r\n]+", _ESCAPES.sub("", terminal.said))
    return [line for line in lines if re.search(rf" {name} ", line)]


def ephemeral(log: Path) -> Sequence[tuple[str, str]]:
    """The messages that are only for a moment: the name of the resource, and the text without Pulumi's colours."""
    events = [json.loads(line).get("diagnosticEvent", {}) for line in log.read_text().splitlines()]
    return [
        (event["urn"].rpartition("::")[2], re.sub(r"<{%\w+%}>", "", event["message"]).strip())
        for event in events
        if event.get("ephemeral")
    ]


def test_two_clusters_in_one_program_wait_side_by_side_and_each_task_has_its_progress_in_its_row(
    project: Project,
) -> None:
    project.write("", STEPS, TWO)
    log = project.folder / "events"
    update = begin(project, (45, 160), "up", "--yes", "--skip-preview", "--parallel=1", "--event-log", str(log))
    for step in (200, 600):
        update.until_said(f"running  {step}/1000")
    (project.folder / "counter/more").touch()
    for name, step in (("one", 300), ("two", 700)):
        update.until_said(f"running  {step}/1000")
        assert f"running  {step}/1000" in rows(update, f"{name}-worker-0")[-1]
    update.until_said("more: tfdeploy status --watch")
    (project.folder / "counter/go").touch()
    assert update.end() == 0, update.said
    for name, others in (("one", "700/1000"), ("two", "300/1000")):
        assert not [line for line in rows(update, f"{name}-worker-0") if others in line]
        assert re.search(r"\d+s left  \d+\.\d steps/s  loss 0\.25", "".join(rows(update, f"{name}-worker-0")))
    own = {f"{name}{rest}" for name in ("one", "two") for rest in ("", "-worker-0", "-run")}
    assert {name for name, _ in ephemeral(log)} == own
    end = _ESCAPES.sub("", update.said).rpartition("Diagnostics:")[2]
    assert end.count("More: `tfdeploy status`, `tfdeploy logs worker-0`") == 2
    assert HINT not in update.said
    project.destroy()
