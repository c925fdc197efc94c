"""`logs`, `events` and `explain` where tasks are containers."""

from tests.cli.calling import tfdeploy
from tests.docker.project import GATED, DockerProject
from tests.waiting import until

JOB = 'command=["python", "train.py"], code="code", env={"COUNTER": __import__("os").environ["COUNTER"]}, wait="0"'
NO_IMAGE = "127.0.0.1:9/no-such-image:1"


def test_logs_follow_a_container_and_outlive_it(docker_project: DockerProject) -> None:
    project = docker_project
    project.write(f"{JOB}, workers=1", GATED)
    project.up()
    project.until_running("worker-0")
    container = project.container("worker-0")
    assert tfdeploy(project, "logs", container, "--tail", "1").out.startswith("worker-0 | tick ")
    project.open()
    followed = tfdeploy(project, "logs", "-f")
    assert followed.code == 0
    first, second, *_, last = followed.out.splitlines()
    assert first.startswith("worker-0 | worker-0 begins")
    assert second == "worker-0 | tick 0"
    assert last.startswith("worker-0 | worker-0 ends after ")
    told = [(one["task"], one["kind"]) for one in tfdeploy(project, "events", "--json").data]
    assert [pair for pair in told if pair[1] in ("task_started", "task_succeeded", "run_ended")] == [
        ("worker-0", "task_started"),
        ("worker-0", "task_succeeded"),
        ("", "run_ended"),
    ]
    project.destroy()
    assert tfdeploy(project, "logs").out == followed.out


def test_explain_names_the_ps_whose_image_cannot_be_pulled(docker_project: DockerProject) -> None:
    project = docker_project
    project.write(f"{JOB}, ps=1, workers=1", GATED)
    project.up()
    project.until_running("ps-0", "worker-0")
    update = ("service", "update", "--detach", "--quiet", "--no-resolve-image", "--image", NO_IMAGE)
    project.docker(*update, project.service("ps-0"))
    until(lambda: "ps-0 cannot start (rejected): " in tfdeploy(project, "explain").out, "it is explained")
    explained = tfdeploy(project, "explain")
    assert explained.code == 1
    assert "no-such-image" in explained.out
    assert "`container={'image': …}` or `jobs={'ps': {'container': {'image': …}}}`" in explained.out
    told = tfdeploy(project, "events", "--json").data
    assert ("engine_state", "ps-0", "rejected") in [(one["kind"], one["task"], one.get("state")) for one in told]
