"""Under Pulumi's Automation API the process is the caller's: it reads `state`, and goes on."""

import subprocess
import sys

from tests.integration.conftest import Project

CALLER = """\
import pulumi
from pulumi import automation as auto
from tfdeploy import TensorFlowCluster

def program():
    cluster = TensorFlowCluster("test", command=["python", "-c", "raise SystemExit({code})"], workers=1)
    pulumi.export("state", cluster.state)
    pulumi.export("tasks", cluster.tasks)

stack = auto.create_or_select_stack("test", project_name="project", program=program)
for _ in range(2):
    found = stack.up(on_output=lambda line: None).outputs
    print("state", found["state"].value, found["tasks"].value[0]["exit_code"])
stack.destroy(on_output=lambda line: None)
print("the caller goes on")
"""


def call(project: Project, code: int) -> "subprocess.CompletedProcess[str]":
    """Run the caller's program to its end."""
    command = [sys.executable, "-c", CALLER.format(code=code)]
    return subprocess.run(command, env=project.env, cwd=project.program, capture_output=True, text=True, check=False)


def test_an_inline_program_runs_again_and_again_in_one_process(project: Project) -> None:
    done = call(project, 0)
    assert done.stdout.split("\n")[:3] == ["state succeeded 0", "state succeeded 0", "the caller goes on"], done.stderr
    assert done.returncode == 0
    project.assert_nothing_left()


def test_a_failed_job_does_not_end_the_callers_process(project: Project) -> None:
    done = call(project, 3)
    assert done.stdout.split("\n")[:3] == ["state failed 3", "state failed 3", "the caller goes on"], done.stderr
    assert done.returncode == 0
    project.assert_nothing_left()
