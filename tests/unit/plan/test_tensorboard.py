"""TensorBoard looks on: it is planned beside the tasks, and neither the cluster nor the job is any different with it."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.backends.docker.test_services import launched
from tests.unit.cases import plan, spec
from tests.unit.plan.test_plan import changes, job
from tests.unit.props import task_props
from tests.unit.report.test_update_wait import followed, sight
from tests.unit.simulation import Launcher, World, running
from tfdeploy.agent.launch.builtin_programs import tensorboard_arguments
from tfdeploy.agent.launch.task_environment import environment
from tfdeploy.agent.model import events
from tfdeploy.agent.model.task_command import TaskAddress
from tfdeploy.agent.record.record import RecordView
from tfdeploy.backends.docker.swarm import services
from tfdeploy.backends.task_access import to_restart
from tfdeploy.errors import BackendError, SpecError
from tfdeploy.report.expected_state import expected_state
from tfdeploy.report.report import report

WITH: dict[str, Any] = {"ps": 1, "workers": 2, "tensorboard": True}
WITHOUT = {**WITH, "tensorboard": False}
BOARD = "tensorboard-0"


def begun(**args: Any) -> World:
    return running(**{**WITH, **args})


def over(**args: Any) -> World:
    made = begun(**args)
    made.exit("worker-0")
    made.exit("worker-1")
    return made


def test_with_it_or_without_it_is_the_same_run() -> None:
    changed = {
        "tensorboard": {"env": {"A": "1"}, "memory": "1GiB", "container": {"image": "mine"}, "port": 7000, "cpus": 1}
    }
    ids = {plan(**args).run.id for args in (WITHOUT, WITH, {**WITH, "jobs": changed})}
    assert len(ids) == 1


@pytest.mark.parametrize("decided", [False, True])
def test_a_preview_says_that_the_others_go_on(decided: bool) -> None:
    assert changes(job(decided, **WITHOUT), **WITH) == ["+ tensorboard-0  (the other tasks continue)"]
    assert changes(job(decided, **WITH), **WITHOUT) == ["- tensorboard-0  (the other tasks continue)"]
    (both,) = changes(job(decided, ps=1, workers=1), **WITH)
    assert both.startswith("+ worker-1, tensorboard-0  ")
    assert "the other tasks continue" not in both


@pytest.mark.parametrize(("key", "value"), [("gpus", 1), ("ec2", {"spot": True})])
def test_what_it_cannot_have_is_refused(key: str, value: Any) -> None:
    with pytest.raises(SpecError) as refusal:
        spec(workers=1, tensorboard=True, jobs={"tensorboard": {key: value}})
    assert refusal.value.where == f"mnist: jobs.tensorboard.{key}"


def test_it_has_what_its_job_asks_for_and_not_the_clusters_place() -> None:
    own = {"memory": "1GiB", "container": {"image": "mine", "volumes": ["a:/a"]}}
    made = spec(
        workers=1, tensorboard=True, container={"placement": ["rack:IS:left"], "user": "me"}, jobs={"tensorboard": own}
    ).jobs[-1]
    assert (made.memory, made.container.image, made.container.user) == (1 << 30, "mine", "me")
    assert (made.container.volumes, made.container.placement) == (("a:/a",), ())
    placed = spec(
        workers=1, tensorboard=True, jobs={"tensorboard": {"container": {"placement": ["rack:IS:right"]}}}
    ).jobs[-1]
    assert placed.container.placement == ("rack:IS:right",)


def test_nobody_waits_for_it_and_it_waits_for_nobody() -> None:
    made = World(**WITH)
    made.come(BOARD)
    assert made.running() == "tensorboard-0/1"
    assert made.states() == "ps-0 scheduled, worker-0 scheduled, worker-1 scheduled, tensorboard-0 running"
    made = World(**WITH)
    made.come("ps-0", "worker-0", "worker-1")
    assert made.running() == "ps-0/1, worker-0/1, worker-1/1"
    assert (events.BARRIER_PASSED, "") in made.happened()
    assert [entry.hostname for entry in made.launchers["ps-0"].address_book] == ["ps-0", "worker-0", "worker-1"]


def test_it_would_have_the_port_that_people_know_until_it_has_one() -> None:
    made = World(**WITH)
    order = made.take(Launcher(BOARD).report())
    assert (order.action, order.port) == ("prepare", 6006)
    made.come(BOARD, port=29_999)
    order = made.take(Launcher(BOARD).report())
    assert order.port == 29_999


def test_it_goes_on_when_the_job_has_failed() -> None:
    made = begun()
    made.exit("worker-0", 3)
    assert made.verdict() == "failed: worker-0 failed (exit 3)"
    assert made.running() == "tensorboard-0/1"


@pytest.mark.parametrize("begin", [begun, over])
def test_it_is_restarted_by_the_usual_policy_and_its_failure_is_not_the_jobs(begin: Any) -> None:
    made = begin(restart={"maximum": 2, "on": ["any"]})
    before = made.verdict()
    made.exit(BOARD, 1)
    assert "tensorboard-0/2" in made.running()
    made.exit(BOARD, 1)
    assert made.states().endswith("tensorboard-0 restarting (in 2 s (2 of 2) after exit 1)")
    made.wait(2)
    assert "tensorboard-0/3" in made.running()
    made.exit(BOARD, 1)
    assert made.job.tasks[BOARD].state == "failed"
    assert made.verdict() == before


@pytest.mark.parametrize("begin", [begun, over])
def test_it_comes_and_goes_while_the_others_go_on(begin: Any) -> None:
    made = begin(tensorboard=False)
    crew, states = made.running(), made.states()
    made.give(**WITH)
    made.come(BOARD)
    assert made.running().replace(", ", " ").split() == sorted([*crew.replace(", ", " ").split(), f"{BOARD}/1"])
    made.give(**WITHOUT)
    assert (made.running(), made.states()) == (crew, states)


def test_its_launcher_that_was_lost_restarts_it_alone() -> None:
    made = over()
    made.lose(BOARD)
    made.come(BOARD)
    assert made.running() == "tensorboard-0/2"
    made = begun()
    made.lose(BOARD)
    made.come(BOARD, port=29_999)
    assert made.running() == "ps-0/1, tensorboard-0/2, worker-0/1, worker-1/1"


def test_one_that_has_ended_may_be_restarted_by_request_until_the_job_is_dismissed() -> None:
    made = over()
    made.exit(BOARD, 1)
    cluster: Any = {"name": "mnist"}
    assert to_restart(made.job, cluster, BOARD).state == "failed"
    made.again(BOARD)
    assert made.running() == "tensorboard-0/2"
    with pytest.raises(BackendError, match="a finished task is not restarted"):
        to_restart(made.job, cluster, "worker-0")
    made.stop()
    with pytest.raises(BackendError, match="a finished task is not restarted"):
        to_restart(made.job, cluster, BOARD)


def test_up_waits_for_the_others_alone() -> None:
    seen, count = followed([sight(over())], **WITH)
    assert (seen.state, count) == ("succeeded", 1)
    assert seen.tasks[-1]["status"] == "running"
    assert seen.endpoints[BOARD] == "127.0.0.1:6006"
    serving = World(standalone_servers=True, ps=1, tensorboard=True)
    serving.come("ps-0")
    seen, count = followed([sight(serving)], standalone_servers=True, ps=1, tensorboard=True)
    assert (seen.state, count) == ("running", 1)


def test_what_it_does_is_not_what_the_job_does() -> None:
    made = World(**WITH)
    made.come(BOARD)
    seen = report(expected_state(plan(**WITH), spec(**WITH)), sight(made))
    assert seen.state == "starting"
    ungiven = replace(sight(made), view=RecordView(made.now))
    for found in (seen, report(expected_state(plan(**WITH), spec(**WITH)), ungiven)):
        commands = {row["hostname"]: row["command"] for row in found.tasks}
        assert commands[BOARD] == "tensorboard"
        assert commands["ps-0"] == "python train.py"


def test_it_is_told_who_it_is_and_of_no_cluster() -> None:
    mine = TaskAddress(BOARD, "tensorboard", 0, "127.0.0.1:6006")
    run = replace(plan(**WITH).run, train_dir="/train/0123")
    known = environment([mine], mine, run)
    assert "TF_CONFIG" not in known
    assert (known["TFDEPLOY_ADDRESS"], known["TFDEPLOY_PS_HOSTS"]) == ("127.0.0.1:6006", "")


@pytest.mark.parametrize(
    ("address", "train_dir", "found"),
    [
        ("127.0.0.1:20001", "/train/0123", "--logdir /train --port 20001 --host 127.0.0.1"),
        ("tensorboard-0:6006", "/t/r/0123", "--logdir /t/r --port 6006 --bind_all"),
        ("10.0.0.4:6006", "gs://bucket/runs/0123", "--logdir gs://bucket/runs --port 6006 --host 10.0.0.4"),
    ],
)
def test_it_listens_where_tasks_do_and_shows_all_runs(address: str, train_dir: str, found: str) -> None:
    known = {"TFDEPLOY_ADDRESS": address, "TFDEPLOY_TRAIN_DIR": train_dir, "TFDEPLOY_HOSTNAME": BOARD}
    assert " ".join(tensorboard_arguments(known)) == found


def test_in_a_container_it_has_its_port_at_its_name() -> None:
    mine = task_props(hostname=BOARD, job="tensorboard", index=0)
    settings = launched(services.task_service(mine))
    assert (settings["host"], settings["port"]) == (BOARD, 6006)
    on_host = launched(services.task_service(task_props({"network": "host"}, hostname=BOARD, job="tensorboard")))
    assert (on_host["host"], on_host["port"]) == ("", 0)
