"""What is killed without a word: nothing is orphaned, nothing lies, and what can come back does."""

import os
import signal

import pytest

from tests.components.conftest import TOKEN, WAITS, Standing
from tests.components.processes import alive, halted
from tests.unit.report.test_run_history import stored
from tests.waiting import until
from tfdeploy.agent.model import events
from tfdeploy.agent.model.events import LAUNCHER_LOST, LAUNCHER_REGISTERED
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.backends.local import supervisor
from tfdeploy.backends.local.backend import BACKEND
from tfdeploy.report import report
from tfdeploy.report.diagnosis import trouble_of

SPAWNS = """
import subprocess, sys
from steps import begin, here, hostname, wait_for

begin()
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
inside = subprocess.Popen(sleeper)
outside = subprocess.Popen(sleeper, start_new_session=True)
(here / f"draft-{hostname}").write_text(f"{inside.pid} {outside.pid}")
(here / f"draft-{hostname}").rename(here / f"pids-{hostname}")
wait_for("gate")
"""
"""Has a child in its own process group, and one in a session of that one's own."""

SAVES_SLOWLY = """
import signal, sys
from steps import begin, here, number, wait_for

def save(*_):
    (here / "saving").touch()
    wait_for("save")
    print("saved", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
print("start", number, flush=True)
begin()
wait_for("gate")
"""


def spawned(cluster: Standing, hostname: str) -> tuple[int, int]:
    """The two grandchildren of `SPAWNS`: the one in the task's process group, the one outside of it."""
    note = cluster.folder / f"pids-{hostname}"
    until(note.exists, f"{hostname} has spawned")
    inside, outside = map(int, note.read_text().split())
    return inside, outside


def test_a_killed_launcher_takes_its_child_along_and_comes_back_and_clear_finds_all(cluster: Standing) -> None:
    cluster.up(SPAWNS, workers=1)
    first, (inside, _) = cluster.until_started("worker-0"), spawned(cluster, "worker-0")
    cluster.until_running("worker-0")
    cluster.kill("worker-0")
    until(lambda: not alive(first) and not alive(inside), "the child and what it has started have gone")
    cluster.until_running("worker-0", times=2)
    assert (LAUNCHER_LOST, "worker-0") in cluster.happened()
    assert cluster.job().tasks["worker-0"].failures == 0
    until(lambda: spawned(cluster, "worker-0")[0] != inside, "it has spawned again")
    _, outside = spawned(cluster, "worker-0")
    assert alive(outside)
    cluster.clear()
    assert not alive(outside), "what hides in a session of its own"


def test_a_child_does_not_outlive_its_launcher_where_nobody_starts_that_again(
    cluster: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisord that is suspended is not waited for, and neither taken for one that has ended."""
    monkeypatch.setattr(report, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(supervisor, "_CALL_SECONDS", 0.3)
    cluster.up(WAITS, workers=1)
    child = cluster.until_started("worker-0")
    launcher = cluster.pid("worker-0")
    with halted(cluster.pid("supervisord")):
        os.kill(launcher, signal.SIGKILL)
        until(lambda: not alive(child), "the child has gone")
        cluster.until_status("worker-0", "unreachable since 20")
        sight = BACKEND.runner.observe(cluster.cluster, TOKEN, ViewRequest())
        wrong, remedy = trouble_of(sight, "heal")
        silent = f"supervisord (process {cluster.pid('supervisord')})"
        assert wrong == f"The engine does not respond: {silent} has not responded for 0.3 s."
        assert remedy.startswith(f"`kill -CONT {cluster.pid('supervisord')}` continues it")
        with pytest.raises(supervisor.Silent, match="has not responded"):
            BACKEND.runner.task_exists(cluster.task_props("worker-0"))


def test_a_training_in_the_background_is_a_success_with_a_warning_everywhere(cluster: Standing) -> None:
    cluster.up(
        workers=1,
        command=["sh", "-c", "echo Error: no data; touch model.h5; nohup sleep 614 & exit 0"],
        metrics={"loss": "loss (.*)"},
    )
    seen = cluster.until_state("succeeded")
    assert [sentence.partition(". ")[0] for sentence in seen.sentences.splitlines()[1:]] == [
        "worker-0 left processes behind, which were killed: sleep 614",
        "worker-0 wrote model.h5 to the working directory, which is not stored: it will be deleted",
        "No line matches the pattern of loss in `metrics`",
    ]
    assert 'worker-0 printed "Error: no data".' in seen.sentences
    assert stored(cluster.job(), now=seen.state).cells(0.0)["result"] == "succeeded with warnings"
    happened = {event.kind: event for event in cluster.events()}
    assert happened[events.PROCESSES_KILLED].commands == ["sleep 614"]
    assert happened[events.MODELS_NOT_STORED].artifacts == ["model.h5"]


def test_a_killed_supervisord_is_reported_and_healed_and_the_run_goes_on(cluster: Standing) -> None:
    cluster.run(WAITS, ps=1, workers=1)
    run = cluster.look().run
    cluster.kill("supervisord")
    cluster.until_status("worker-0", "unreachable since 20")
    seen = cluster.look()
    assert seen.state == "unknown"
    assert seen.reason.startswith("the controller is unreachable since 20")
    assert all(row["status"].startswith("unreachable since 20") for row in seen.tasks)
    assert not any(BACKEND.runner.task_exists(cluster.task_props(task.hostname)) for task in cluster.plan.tasks)
    assert not BACKEND.runner.run_is_current(cluster.run_props())
    cluster.stand()
    for hostname in ("ps-0", "worker-0"):
        cluster.until_running(hostname, times=2)
        assert BACKEND.runner.task_exists(cluster.task_props(hostname))
    assert BACKEND.runner.run_is_current(cluster.run_props())
    assert cluster.look().run == run
    cluster.finish()
    assert [len(cluster.started(hostname)) for hostname in ("ps-0", "worker-0")] == [2, 2]


def test_a_healed_task_begins_when_the_one_before_has_saved_and_what_it_prints_without_a_controller_is_retained(
    cluster: Standing,
) -> None:
    cluster.run(SAVES_SLOWLY, workers=1, stop_grace_period="30s")
    cluster.kill("supervisord")
    until((cluster.folder / "saving").exists, "worker-0 saves")
    cluster.stand()
    cluster.open("save")
    cluster.until_running("worker-0", times=2)
    cluster.until_output("worker-0", b"start 1\nsaved\nstart 2\n")
    assert cluster.happened().count((LAUNCHER_REGISTERED, "worker-0")) == 2

    launcher = cluster.pid("worker-0")
    (cluster.folder / "save").unlink()
    cluster.kill("supervisord")
    cluster.open("save")
    until(lambda: not alive(launcher), "the launcher has ended")
    BACKEND.runner.delete_task(cluster.task_props("worker-0"))
    record = Record(cluster.kept(cluster.clear()) / "record")
    assert record.log(record.runs()[0], "worker-0").printed(STDOUT) == b"start 1\nsaved\nstart 2\nsaved\n"


def supervisords(cluster: Standing) -> list[int]:
    """The process ids of all that the cluster has."""
    return [one.pid for one in supervisor.marked(cluster.places.home) if "supervisor.supervisord" in one.cmdline()]


@pytest.mark.parametrize("gone", ["socket", "home"])
def test_a_supervisord_whose_socket_is_gone_lives_and_gets_no_second_one(cluster: Standing, gone: str) -> None:
    cluster.run(WAITS, ps=1, workers=1)
    pid, moved = cluster.pid("supervisord"), cluster.folder / "moved"
    if gone == "socket":
        cluster.places.supervisor_socket.unlink()
        wrong, remedy = trouble_of(BACKEND.runner.observe(cluster.cluster, TOKEN, ViewRequest()), "heal")
        assert f"supervisord (process {pid}) runs, and cannot be reached" in wrong
        assert f"`kill {pid}` ends it" in remedy
    else:
        cluster.places.home.rename(moved)
    with pytest.raises(supervisor.Silent, match=rf"process {pid}\) runs"):
        cluster.stand()
    assert supervisords(cluster) == [pid]
    if gone == "socket":
        assert cluster.look().state == "running"
        os.kill(pid, signal.SIGTERM)
        until(lambda: not alive(pid), "supervisord has ended")
        cluster.stand()
        cluster.until_running("ps-0", "worker-0", times=2)
        assert len(supervisords(cluster)) == 1


def test_a_killed_supervisord_leaves_no_orphan(cluster: Standing) -> None:
    cluster.up(SPAWNS, ps=1, workers=1)
    pids = [cluster.until_started(hostname) for hostname in ("ps-0", "worker-0")]
    pids += [spawned(cluster, hostname)[0] for hostname in ("ps-0", "worker-0")]
    pids += [cluster.pid(program) for program in ("controller", "ps-0", "worker-0")]
    cluster.kill("supervisord")
    until(lambda: not any(map(alive, pids)), "all has gone")
