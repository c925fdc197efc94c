"""Clusters are found and looked at: while they come, while they run, when they have ended, after `destroy`."""

import re
from pathlib import Path

from tests.cli.calling import ARGUMENTS, TRAIN, open_gate, tfdeploy
from tests.integration.conftest import Project
from tests.waiting import until
from tfdeploy.report.tables import heading, machine_table, task_table


def test_a_cluster_is_looked_at_from_its_first_moment_until_it_is_gone(project: Project) -> None:
    nothing = tfdeploy(project, "show")
    assert (nothing.code, nothing.out) == (3, "")
    assert nothing.err == "tfdeploy: project/test has no cluster yet. `pulumi up` creates it.\n"

    project.write(ARGUMENTS.replace('wait="0"', 'wait="10m"'), TRAIN)
    first = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(lambda: "running" in tfdeploy(project, "show").out, "it is shown while the first `up` runs")
    project.until_running("ps-0", "worker-0", "worker-1")
    brief = tfdeploy(project, "show")
    assert "machine" not in brief.out.lower().split("\n\n")[1], "this computer has no table"
    assert "Run running for " in brief.out
    shown = tfdeploy(project, "show", "-o", "wide")
    assert (shown.code, shown.err) == (0, "")
    for table in (machine_table([]), task_table([], {})):
        assert re.search(f"^{' +'.join(map(heading, table.columns))}$", shown.out, re.MULTILINE)
    assert re.search(r"worker-0 +running +\d+ (?:second|minute)s? ago$", brief.out, re.MULTILINE)
    (document,) = tfdeploy(project, "show", "--json").data
    assert (document["project"], document["stack"], document["name"]) == ("project", "test", "test")
    assert [row["hostname"] for row in document["tasks"]] == ["ps-0", "worker-0", "worker-1"]

    assert tfdeploy(project, "wait", "--timeout", "0s").code == 5
    assert all(address in shown.out for address in document["endpoints"].values())
    missing = tfdeploy(project, "logs", "worker-7")
    assert (missing.code, missing.err) == (
        3,
        "tfdeploy: project/test/test has no task 'worker-7'; it has ps-0, worker-0, worker-1.\n",
    )

    open_gate(project)
    waited = tfdeploy(project, "wait")
    assert (waited.code, waited.err) == (0, "project/test/test: succeeded: worker-0 succeeded\n")
    first.communicate()
    project.destroy()
    after = tfdeploy(project, "show")
    assert after.code == 0
    assert "Run succeeded" in after.out
    assert tfdeploy(project, "show", "--json").data[0]["metrics"] == {"accuracy": 0.5}


def test_where_there_is_nothing_one_sentence_says_what_would_do(training: Project, tmp_path: Path) -> None:
    elsewhere = tfdeploy(training, "show", folder=tmp_path)
    assert elsewhere.code == 3
    assert f"no Pulumi.yaml in {tmp_path}" in elsewhere.err
    (title,) = re.findall(r"`--cluster (\S+)` selects the first", " ".join(elsewhere.err.split()))
    assert tfdeploy(training, "show", "--cluster", title, folder=tmp_path).code == 0
    assert len(elsewhere.err.splitlines()) == 1
    assert tfdeploy(training, "show", "--cwd", str(training.program), "--stack", "test", folder=tmp_path).code == 0
    other = tfdeploy(training, "show", "--stack", "production")
    assert (other.code, other.err.startswith("tfdeploy: training/production has no cluster yet.")) == (3, True)
    wrong = tfdeploy(training, "show", "--colour")
    assert wrong.code == 2
    assert "Traceback" not in elsewhere.err + other.err + wrong.err
