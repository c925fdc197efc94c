"""The life of a job through the real engine."""

import re
import shutil
from pathlib import Path

from tests.cli.calling import tfdeploy
from tests.integration.conftest import COUNTER, Project

ENV = "env={'COUNTER': __import__('os').environ['COUNTER']}"
JOB = f'command=["python", "train.py"], code="code", ps=1, workers=2, {ENV}'


def test_changed_arguments_code_or_run_id_are_a_new_run(project: Project) -> None:
    project.write(JOB)
    project.up()
    project.write(JOB.replace('"train.py"', '"train.py", "--again"'))
    preview = project.call("preview", "--stack", project.stack).output
    assert re.search(r"~ run +\w{12} -> \w{12} +\(all tasks start again, in a train_dir of the new run\)", preview)
    assert project.up().touched() == {"test-run"}
    assert project.outputs()["logs"]["worker-0"][0].startswith("trained --again --job_name=worker")
    assert project.counts() == {"ps-0": 2, "worker-0": 2, "worker-1": 2}
    project.write(JOB, COUNTER + "# changed\n")
    assert project.up().touched() == {"test-run"}
    project.write(JOB)
    assert "this run has succeeded before: nothing starts" in project.call("preview", "--stack", project.stack).output
    project.write(JOB + ', run_id="third"', COUNTER + "# changed\n")
    assert project.up().touched() == {"test-run"}
    assert project.counts()["worker-1"] == 4
    project.destroy()
    runs = tfdeploy(project, "runs", "--json").data
    assert [row["changed"] for row in runs] == [["image, run_id or a secret"], ["command", "code"], ["command"], None]
    assert {row["result"] for row in runs} == {"succeeded"}
    difference = tfdeploy(project, "diff", runs[2]["run"], runs[1]["run"], "--json").data
    assert difference["changed"] == ["command", "code"]
    assert [row["name"] for row in difference["arguments"]] == ["command"]
    file = project.program / "diff.html"
    assert tfdeploy(project, "diff", "--html", str(file), "--json").data["bytes"] == len(file.read_bytes())
    state = Path(project.env["XDG_STATE_HOME"], "tfdeploy")
    assert not list((state / "code").glob("*")), "the code of a destroyed cluster"
    shutil.rmtree(state / "retained")
    assert tfdeploy(project, "runs", "--json").data == []
