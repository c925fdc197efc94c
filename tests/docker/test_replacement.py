"""What replaces a network, a secret or a config deletes nothing that is in use, and the tasks continue with the new one."""

import pytest

from tests.docker.project import GATED, DockerProject
from tfdeploy.agent.model.events import TASK_INTERRUPTED, TASK_STARTED

JOB = (
    'command=["python", "train.py"], code="code", workers=2, wait="0", secrets={"KEY": "x"}, '
    'env={"COUNTER": __import__("os").environ["COUNTER"]}'
)
WORKERS = ("worker-0", "worker-1")
ONE_AT_A_TIME = [TASK_INTERRUPTED, TASK_STARTED] * 2
STARTS = {"test-token": 0, "test-secret-KEY": 1, "test-agent": 1, "test-network": 1}
"""How often each task starts again. The controller alone has the secret `token`. Tasks on the old network would not reach those on
the new one: all of them start again at once."""


@pytest.mark.full
def test_a_replaced_network_secret_or_config(project: DockerProject) -> None:
    project.write(JOB, GATED)
    project.up()
    project.until_running(*WORKERS)
    tokens, starts = launcher_tokens(project), 1
    assert len(tokens) == len(WORKERS)
    for name, again in STARTS.items():
        project.up("--replace", f"**::{name}")
        starts += again
        project.until_counts(dict.fromkeys(WORKERS, starts))
        project.until_running(*WORKERS)
        if again and name != "test-network":
            order = [kind for kind, *_ in project.events() if kind in ONE_AT_A_TIME]
            assert order[-len(ONE_AT_A_TIME) :] == ONE_AT_A_TIME, order
        assert_unchanged(project, starts)
    project.open()
    assert project.finished()["state"] == "succeeded"
    for name in STARTS:
        project.up("--replace", f"**::{name}")
        assert_unchanged(project, starts)
    assert project.outputs()["state"] == "succeeded"
    assert launcher_tokens(project) == tokens
    project.destroy()


def launcher_tokens(project: DockerProject) -> set[str]:
    """The secrets with the tasks' tokens, whose names identify their content."""
    names = project.docker("secret", "ls", "--format", "{{.Name}}", *project.filters()).split()
    return {name for name in names if "-worker-" in name}


def assert_unchanged(project: DockerProject, starts: int) -> None:
    """One more update changes nothing, and no task starts."""
    assert list(project.up().steps()) == ["unchanged"]
    assert project.counts() == dict.fromkeys(WORKERS, starts)
