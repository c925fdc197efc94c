"""Nothing is left on the engine, however it came to be left; what somebody removed by hand is no obstacle."""

import pytest

from tests.docker.project import GATED, DockerProject
from tests.waiting import until

ENV = 'env={"COUNTER": __import__("os").environ["COUNTER"]}'
JOB = f'command=["python", "train.py"], code="code", ps=1, workers=1, wait="0", {ENV}'


def test_pulumi_killed_during_a_create_leaves_nothing_after_cancel_and_destroy(project: DockerProject) -> None:
    project.use_plain_python()
    # The update waits for the training: it has not ended when it is killed, however late that is.
    project.write(JOB.replace('wait="0"', 'wait="10m"') + ", secrets={'KEY': 'x'}", GATED)
    process = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(lambda: "service" in project.left(), "the first task")
    assert process.poll() is None
    project.kill(process)
    assert project.left() != {}
    assert project.call("cancel", "--yes", "--stack", project.stack).exit_code == 0
    project.destroy()


@pytest.mark.full
def test_what_was_removed_by_hand_is_healed_and_no_obstacle_to_destroy(project: DockerProject) -> None:
    project.write(JOB, GATED)
    project.up()
    project.until_running("ps-0", "worker-0")
    project.docker("service", "rm", project.service("worker-0"), project.service("controller"))
    seen = project.up(fails=True)
    assert "up --refresh" in seen.output
    assert project.outputs()["state"] == "unknown"
    assert {"test-worker-0", "test-run"} <= project.up("--refresh").touched()
    project.until_running("ps-0", "worker-0")
    project.until_counts({"ps-0": 1, "worker-0": 2})  # what was not removed was not started again

    project.remove_by_hand("network", "config", "secret")
    project.up("--refresh")
    project.until_running("ps-0", "worker-0")
    project.remove_by_hand("config", "secret")
    project.destroy()


def test_an_engine_that_is_gone_is_forgotten_only_by_request(project: DockerProject) -> None:
    address = project.folder / "engine.sock"
    address.symlink_to(project.host.removeprefix("unix://"))
    env = {"DOCKER_HOST": f"unix://{address}"}
    project.write(JOB, GATED)
    project.up(env=env)
    project.until_running("worker-0")
    address.unlink()
    failed = project.call("destroy", "--yes", "--skip-preview", "--stack", project.stack)
    assert failed.exit_code != 0
    assert "TFDEPLOY_DELETE_UNREACHABLE=1 pulumi destroy" in failed.output
    assert f"the Docker engine at unix://{address} does not respond" in failed.output
    gone = {"TFDEPLOY_DELETE_UNREACHABLE": "1"}
    done = project.call("destroy", "--yes", "--skip-preview", "--stack", project.stack, env=gone)
    assert done.exit_code == 0, done.output
    assert project.call("stack", "rm", "--yes", project.stack).exit_code == 0, "the state is empty"
    assert "service" in project.left(), "the engine was only out of reach"
