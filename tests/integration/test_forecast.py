"""The line of a preview about the run before a new one, and what the new one is expected to take."""

import json
from pathlib import Path

from tests.integration.conftest import Project

JOB = 'command=["python", "train.py", {option!r}], code="code", workers=1, metrics={{"accuracy": r"accuracy: (\\S+)"}}'
SCRIPT = "print('step 100 accuracy: 0.95')\n"
SECONDS = 60.0


def test_a_preview_forecasts_a_new_run_from_earlier_ones_and_is_silent_otherwise(project: Project) -> None:
    project.write(JOB.format(option="--steps=100"), SCRIPT)
    assert "last run" not in preview(project), "the first preview"
    for number in range(3):
        project.write(JOB.format(option="--steps=100"), f"{SCRIPT}# {number}\n")
        first = project.up()
        assert ("last run: accuracy 0.95 after " in first.output) == (number > 0)
    assert "last run" not in preview(project), "nothing changes"

    store_durations(project)
    project.write(JOB.format(option="--steps=100"), f"{SCRIPT}# changed\n")
    line = "last run: accuracy 0.95 after 60 s; this change: code only; expected 55 to 65 s\n"
    assert line in preview(project)
    project.write(JOB.format(option="--quick"), f"{SCRIPT}# 2\n")
    assert "last run: accuracy 0.95 after 60 s; this change: command only\n" in preview(project)
    project.write(JOB.format(option="--steps=100"), f"{SCRIPT}# 0\n")
    assert "last run" not in preview(project), "this run has succeeded before"

    project.write(JOB.format(option="--steps=100"), f"{SCRIPT}# changed\n")
    assert line in project.up().output
    project.destroy()


def preview(project: Project) -> str:
    done = project.call("preview", "--stack", project.stack)
    assert done.exit_code == 0, done.output
    return done.output


def store_durations(project: Project) -> None:
    """Such short runs differ by more than a forecast may: in their receipts each has taken as long."""
    paths = list(Path(project.env["XDG_STATE_HOME"], "tfdeploy", "receipts").glob("*/*.json"))
    assert len(paths) == 3
    for path in paths:
        receipt = json.loads(path.read_text())
        assert receipt["outcome"]["is_final"], "the update that has waited for the run stores it"
        receipt["outcome"]["ended"] = receipt["outcome"]["submitted"] + SECONDS
        path.write_text(json.dumps(receipt))
