"""Under Pulumi's Automation API a failed run raises `CommandError`, and the caller goes on."""

import sys

from tests.integration.conftest import ROOT, Project
from tests.pages import blocks
from tests.setup.programs import SCRIPT

CLUSTER = """\
import pulumi
from tfdeploy import TensorFlowCluster

cluster = TensorFlowCluster("test", command=["python", "-c", "raise SystemExit({code})"], workers=1)
for name in ("state", "tasks", "run"):
    pulumi.export(name, getattr(cluster, name))
"""

LOCAL = """\
from pulumi import automation as auto

stack = auto.create_or_select_stack("test", work_dir=".")
"""

CALLER = """\
for _ in range(2):
    try:
        result = stack.up(on_output=lambda line: None)
        print("result", result.summary.result)
    except auto.CommandError as error:
        print("error", "test: the run failed: worker-0 failed (exit 3);" in str(error), "Traceback" in str(error))
    found = stack.outputs()
    print("state", found["state"].value, found["tasks"].value[0]["exit_code"], bool(found["run"].value))
stack.destroy(on_output=lambda line: None)
print("the caller goes on")
"""

FAILED = "state failed 3 True"
END = "the caller goes on"


def call(project: Project, code: int) -> list[str]:
    """Run the caller's program to its end; its lines."""
    project.write("", program=CLUSTER.format(code=code))
    done = project.run(sys.executable, "-c", LOCAL + CALLER)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_a_failed_run_is_an_error_each_time_and_its_outputs_are_recorded(project: Project) -> None:
    lines = call(project, 3)
    assert lines == [*["error True False", FAILED] * 2, END]
    project.assert_nothing_left()


def test_the_program_of_the_page_trains_and_removes_the_cluster(project: Project) -> None:
    program, *_ = blocks(ROOT / "docs" / "how-to" / "automate.md", "python")
    (project.program / "train").mkdir()
    (project.program / "train" / "train.py").write_text(SCRIPT)
    done = project.run(sys.executable, "-c", program.text)
    assert done.exit_code == 0, done.output
    assert "fitted: 0.75" in done.output.splitlines()
    project.assert_nothing_left()
