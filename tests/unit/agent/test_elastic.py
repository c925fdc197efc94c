"""Elastic runs: workers come, go and are lost while the others train."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.simulation import Launcher, World, running
from tfdeploy.agent.control import elastic
from tfdeploy.agent.control.reconcile import inherit_fences, remove_tasks
from tfdeploy.agent.model import events, sync
from tfdeploy.agent.model.run_state import Ended
from tfdeploy.agent.model.task_command import placeholders

ELASTIC: dict[str, Any] = {"elastic": {"max": 4}}


def elastic_run(workers: int = 2, **args: Any) -> World:
    return running(ps=1, workers=workers, **{**ELASTIC, **args})


def hosts(made: World, hostname: str) -> str:
    """The addresses of workers that a program was told."""
    launcher = made.launchers[hostname]
    task = next(entry for entry in launcher.address_book if entry.hostname == hostname)
    return placeholders(launcher.address_book, task)["worker_hosts"]


ALL_HOSTS = "127.0.0.1:21000,127.0.0.1:21001,127.0.0.1:25000,127.0.0.1:25001"


def test_every_task_is_told_the_addresses_of_all_workers_up_to_the_maximum() -> None:
    made = elastic_run()
    assert {hosts(made, name) for name in ("worker-0", "worker-1")} == {ALL_HOSTS}
    book = made.launchers["ps-0"].address_book
    assert [entry.hostname for entry in book] == ["ps-0", "worker-0", "worker-1", "worker-2", "worker-3"]


def test_workers_are_added_and_removed_and_the_others_continue() -> None:
    made = elastic_run()
    made.resize(ps=1, workers=4, **ELASTIC)
    assert made.running() == "ps-0/1, worker-0/1, worker-1/1, worker-2/1, worker-3/1"
    assert hosts(made, "worker-3") == ALL_HOSTS
    made.resize(ps=1, workers=1, **ELASTIC)
    assert made.running() == "ps-0/1, worker-0/1"
    made.restart_controller()
    made.resize(ps=1, workers=3, **ELASTIC)
    assert made.running() == "ps-0/1, worker-0/1, worker-1/2, worker-2/2"
    assert hosts(made, "worker-2") == ALL_HOSTS
    kinds = [kind for kind, _ in made.happened()]
    assert events.TASKS_CHANGED not in kinds
    assert events.ADDRESS_CHANGED not in kinds
    assert kinds.count(events.WORKERS_CHANGED) == 2


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("again", ["run", "next run"])
def test_a_former_launcher_does_not_displace_a_worker_that_was_added_again(again: str, restarts: bool) -> None:
    made = elastic_run(3)
    former = made.launchers.pop("worker-2")  # its machine is cut off
    note_removed(made, 2)
    if restarts:
        made.restart_controller()
    if again == "run":
        made.give(ps=1, workers=3, **ELASTIC)
    else:
        before = made.job
        made.give(ps=1, workers=3, run_id="next", **ELASTIC)
        inherit_fences(made.job, before)
    made.come("worker-0", "worker-1", "ps-0", "worker-2")
    current = made.launchers["worker-2"]
    assert current.generation > former.generation
    state = dict(vars(made.job.tasks["worker-2"]))
    assert made.take(former.report()).action == sync.END, "its machine is there again"
    assert {**vars(made.job.tasks["worker-2"]), "seen": 0} == {**state, "seen": 0}
    assert made.job.tasks["worker-2"].report.instance == current.instance
    unknown = replace(former.report(), instance="one before it", generation=former.generation)
    assert made.take(unknown).action == sync.END


def note_removed(made: World, workers: int) -> None:
    """An update to fewer workers, whose launchers do not respond."""
    removed = [name for name in made.job.tasks if name.startswith("worker-") and int(name[-1]) >= workers]
    made.note(remove_tasks(made.job, removed))
    made.give(ps=1, workers=workers, **ELASTIC)


def test_another_number_of_other_tasks_restarts_all() -> None:
    made = elastic_run()
    made.give(ps=2, workers=2, **ELASTIC)
    made.come("ps-1")
    assert made.running() == "ps-0/2, ps-1/1, worker-0/2, worker-1/2"


@pytest.mark.parametrize("most", [0, 2, 8])
def test_another_maximum_or_none_restarts_all(most: int) -> None:
    made = elastic_run()
    made.give(ps=1, workers=2, **({"elastic": {"max": most}} if most else {}))
    assert made.running() == "ps-0/2, worker-0/2, worker-1/2"
    assert len(hosts(made, "worker-0").split(",")) == (most or 2)
    assert [kind for kind, _ in made.happened()].count(events.TASKS_CHANGED) == 1


def test_a_worker_that_finds_its_port_taken_has_all_tasks_restart_with_its_new_address() -> None:
    made = elastic_run()
    made.give(ps=1, workers=3, **ELASTIC)
    made.come("worker-2", port=29_999)
    assert (events.ADDRESS_CHANGED, "") in made.happened()
    assert "ps-0/2, worker-0/2, worker-1/2" in made.running()
    assert {name: it.attempt for name, it in made.launchers.items() if it.running}.keys() == set(made.job.tasks)
    assert hosts(made, "worker-0").split(",")[2] == hosts(made, "worker-2").split(",")[2] == "127.0.0.1:29999"


@pytest.mark.parametrize("is_elastic", [True, False])
def test_a_lost_ps_at_another_address_waits_for_a_lost_worker_only_without_elastic(is_elastic: bool) -> None:
    made = elastic_run() if is_elastic else running(ps=1, workers=2)
    made.lose("worker-1")
    made.lose("ps-0")
    made.come("ps-0", port=29_999)
    assert made.running() == ("ps-0/3, worker-0/2" if is_elastic else "")
    made.come("worker-1")
    assert made.running() == "ps-0/3, worker-0/2, worker-1/2"


@pytest.mark.parametrize("how", [{"code": 1}, {"code": 137, "signal": "SIGKILL"}, {"code": 137, "oom": True}])
def test_a_worker_that_fails_for_good_does_not_fail_the_run(how: dict[str, Any]) -> None:
    made = elastic_run(restart={"maximum": 0})
    made.exit("worker-1", **how)
    assert made.verdict() == "none"
    assert made.running() == "ps-0/1, worker-0/1"
    made.exit("worker-0")
    assert made.verdict() == "succeeded: worker-0 succeeded"


@pytest.mark.parametrize("hostname", ["worker-0", "ps-0"])
def test_the_tasks_that_are_not_optional_fail_the_run(hostname: str) -> None:
    made = elastic_run(restart={"maximum": 0})
    made.exit(hostname, 1)
    assert made.verdict() == f"failed: {hostname} failed (exit 1)"


def test_launchers_that_are_lost_again_and_again_do_not_fail_the_run() -> None:
    made = elastic_run()
    for _ in range(11):
        made.lose("worker-1")
        made.come("worker-1")
        made.wait(300)
    assert made.job.tasks["worker-1"].losses > 0
    assert made.verdict() == "none"
    assert made.running().startswith("ps-0/1, worker-0/1, worker-1/")


def test_a_worker_that_has_failed_is_started_again_by_request() -> None:
    made = elastic_run(restart={"maximum": 0})
    made.exit("worker-1", 1)
    made.come("worker-1")
    assert made.running() == "ps-0/1, worker-0/1"
    made.again("worker-1")
    assert made.running() == "ps-0/1, worker-0/1, worker-1/2"


@pytest.mark.parametrize("service", ["", ".mnist-4711"])
def test_where_hosts_have_the_names_of_tasks_so_have_workers_that_do_not_exist(service: str) -> None:
    made = elastic_run()
    for task in made.job.tasks.values():
        task.host, task.port = f"{task.hostname}{service}", 2222
    made.job.reserved = {}
    elastic.reserve_addresses(made.job, lambda: 0)
    assert made.job.reserved == {name: f"{name}{service}:2222" for name in ("worker-2", "worker-3")}
    assert elastic.unused_ports(made.job) == set()


def test_the_ports_of_workers_that_do_not_exist_are_to_be_reserved_until_the_end() -> None:
    made = elastic_run()
    assert elastic.unused_ports(made.job) == {25_000, 25_001}
    made.resize(ps=1, workers=3, **ELASTIC)
    assert elastic.unused_ports(made.job) == {25_001}
    made.resize(ps=1, workers=1, **ELASTIC)
    assert elastic.unused_ports(made.job) == {21_001, 25_000, 25_001}
    made.exit("worker-0")
    assert elastic.unused_ports(made.job) == set()


def test_a_worker_that_fails_before_the_first_start_is_left_out() -> None:
    """Its launcher finds the port taken that the user has chosen."""
    made = World(ps=1, workers=2, jobs={"worker": {"port": 5000}}, restart={"maximum": 0}, **ELASTIC)
    made.come("ps-0")
    failed = Ended(1, at=made.now)
    report = replace(Launcher("worker-1").report(), run_id=made.job.spec.id, attempt=1, phase=sync.EXITED, exit=failed)
    made.take(report)
    made.come("worker-0", port=5000)
    assert made.running() == "ps-0/1, worker-0/1"
    assert hosts(made, "worker-0") == "127.0.0.1:5000,127.0.0.1:5001,127.0.0.1:5002,127.0.0.1:5003"


def test_chosen_ports_are_those_of_workers_that_do_not_exist_and_the_controller_reserves_none_of_them() -> None:
    made = World(ps=1, workers=2, jobs={"worker": {"port": 25_000}}, **ELASTIC)
    for first in (25_000, 26_000):
        made.launchers.clear()
        made.give(ps=1, workers=2, jobs={"worker": {"port": first}}, **ELASTIC)
        made.come("ps-0")
        for index in range(2):
            made.come(f"worker-{index}", port=first + index)
        assert hosts(made, "worker-0") == ",".join(f"127.0.0.1:{first + index}" for index in range(4))
        assert elastic.unused_ports(made.job) == set()


def test_a_rolling_restart_does_not_wait_for_a_worker_that_is_lost() -> None:
    made = elastic_run(3)
    made.lose("worker-1")
    made.roll("worker-1", "worker-2")
    made.wait(1)
    made.wait(9)
    assert made.running() == "ps-0/1, worker-0/1, worker-2/1", "it may only be late"
    made.wait(1)
    assert made.running() == "ps-0/1, worker-0/1, worker-2/2"
    made.wait(3)
    assert made.job.restart_queue == []
