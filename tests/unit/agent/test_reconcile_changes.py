"""What happens to a job from outside: launchers lost, controllers killed, counts and settings changed, other runs given."""

from dataclasses import replace

from tests.unit.simulation import Launcher, World, running
from tfdeploy.agent.control.reconcile import remove_tasks
from tfdeploy.agent.model import events, sync
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.model.sync import Order


def test_a_launcher_that_was_lost_starts_its_task_again_though_the_policy_has_no_restarts() -> None:
    job = running(ps=1, workers=1, restart={"maximum": 0})
    job.lose("worker-0")
    job.wait(60)
    assert job.states() == "ps-0 running, worker-0 running"
    job.come("worker-0")
    assert [(event.kind, event.task, event.attempt) for event in job.events] == [
        (events.LAUNCHER_LOST, "worker-0", 1),
        (events.LAUNCHER_REGISTERED, "worker-0", 0),
        (events.TASK_STARTED, "worker-0", 2),
    ]
    assert job.running() == "ps-0/1, worker-0/2"


def test_a_stale_report_changes_nothing() -> None:
    job = running(workers=2, restart={"on": ["any"], "backoff": "0"})
    job.launchers["worker-0"].end_child(3, job.now)
    stale = job.launchers["worker-0"].report()
    job.settle()
    before = (job.states(), list(job.events))
    assert job.running() == "worker-0/2, worker-1/1"
    job.take(stale)
    job.take(stale)
    assert (job.states(), job.events) == before


def test_a_report_for_an_unknown_task_is_told_to_end() -> None:
    job = running(workers=2)
    report = replace(job.launchers["worker-1"].report(), hostname="worker-7")
    assert job.take(report) == Order(sync.END, 10.0)


def test_a_new_launcher_waits_for_the_run_that_has_its_task() -> None:
    job = running(workers=2)
    early = Launcher("worker-2")
    assert job.take(early.report()) == Order(sync.NOTHING, 10.0)
    assert job.take(replace(early.report(), phase=sync.RUNNING)).action == sync.END, (
        "a program of which the run knows nothing"
    )
    job.give(workers=3)
    assert job.take(early.report()).action == sync.PREPARE
    remove_tasks(job.job, ["worker-2"])
    assert job.take(early.report()).action == sync.END


def test_a_run_that_has_trained_waits_for_new_ones_as_long_as_it_takes() -> None:
    job = running(workers=1, start_timeout="60s")
    job.wait(3_600)
    job.give(workers=2, start_timeout="60s")
    job.wait(3_600)
    assert job.states() == "worker-0 waiting (worker-1), worker-1 scheduled"
    job.come("worker-1")
    assert job.running() == "worker-0/2, worker-1/1"


def test_a_child_that_was_started_but_not_yet_reported_starts_again_too() -> None:
    job = World(workers=1)
    job.launchers["worker-0"] = worker = Launcher("worker-0")
    while not worker.running:
        job.sync("worker-0")
    assert job.states() == "worker-0 starting"
    job.give(workers=2)
    job.come("worker-1")
    books = [[entry.hostname for entry in launcher.address_book] for launcher in job.launchers.values()]
    assert books == 2 * [["worker-0", "worker-1"]]


def test_a_finished_run_with_other_counts_starts_nothing() -> None:
    job = running(ps=1, workers=1)
    job.exit("worker-0")
    job.give(ps=1, workers=3)
    job.come("ps-0", "worker-1", "worker-2")
    assert job.verdict() == "succeeded: worker-0 succeeded"
    assert job.states() == (
        "ps-0 stopped (run finished), worker-0 succeeded, "
        "worker-1 stopped (run finished), worker-2 stopped (run finished)"
    )
    assert job.launchers == {}


def test_an_earlier_run_taken_up_again_is_prepared_anew_before_it_starts() -> None:
    job = running(ps=1, workers=1)
    earlier = job.job
    job.give(ps=1, workers=1, run_id="another")
    job.wait(3_600)
    job.job = earlier
    job.give(ps=1, workers=1)
    assert job.verdict() == "none"
    assert {it.run for it in job.launchers.values()} == {earlier.spec.id}
    assert job.states() == "ps-0 running, worker-0 running"
    assert job.running() == "ps-0/2, worker-0/2"


def test_a_rolling_restart_takes_one_task_after_the_other_in_their_order() -> None:
    job = running(ps=1, workers=2)
    job.roll("worker-1", "worker-0")
    assert job.running() == "ps-0/1, worker-0/1, worker-1/1"
    job.wait(1)
    assert job.running() == "ps-0/1, worker-0/2, worker-1/1"
    job.wait(2)
    assert job.running() == "ps-0/1, worker-0/2, worker-1/1"
    job.wait(0.1)
    assert job.running() == "ps-0/1, worker-0/2, worker-1/2"
    job.wait(2.1)
    assert job.job.restart_queue == []
    restarted = [task for kind, task in job.happened() if kind == events.SETTINGS_CHANGED]
    assert restarted == ["worker-0", "worker-1"]


def test_a_rolling_restart_passes_over_a_task_that_is_done() -> None:
    job = running(chief=1, workers=2)
    job.exit("worker-0")
    job.roll("worker-0", "worker-1")
    job.wait(1)
    assert job.running() == "chief-0/1, worker-1/2"
    assert (events.SETTINGS_CHANGED, "worker-0") not in job.happened()


def test_a_report_from_before_the_end_wakes_no_task_that_is_done() -> None:
    job = running(workers=2)
    stale = job.launchers["worker-0"].report()
    job.exit("worker-0")
    assert job.take(stale) == Order(sync.END, 10.0, generation=1)
    assert job.states() == "worker-0 succeeded, worker-1 running"


def test_the_end_of_an_attempt_that_a_restored_record_does_not_know_counts() -> None:
    job = running(workers=1, restart={"on": ["any"], "maximum": 3, "backoff": "1s"})
    older = RunState.from_dict(job.job.to_dict())
    job.exit("worker-0", 1)
    job.wait(2)
    job.launchers["worker-0"].end_child(0, job.now)
    job.job = older
    job.settle()
    assert job.states() == "worker-0 succeeded"
