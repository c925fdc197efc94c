"""Services start before the other tasks, decide nothing but their own failure, and run for as long as any other task."""

from typing import Any

from tests.unit.cases import plan, spec
from tests.unit.simulation import World, running
from tfdeploy.agent.control.start_barrier import LISTEN_SECONDS
from tfdeploy.spec.jobs import Restart

STORE = {"store": {"command": ["redis-server"], "restart": {"maximum": 1, "backoff": "0"}}}


def begun(is_listening: bool = True, **args: Any) -> World:
    world = running(**{"workers": 1, "services": STORE, **args})
    world.launchers["store-0"].is_listening = is_listening
    world.settle()
    return world


def test_the_others_wait_until_it_has_run_for_a_while_where_it_does_not_listen() -> None:
    world = begun(is_listening=False)
    world.wait(LISTEN_SECONDS - 1)
    assert world.running() == "store-0/1"
    world.wait(1)
    assert world.running() == "store-0/1, worker-0/1"


def test_one_that_fails_starts_again_alone_and_a_task_that_starts_meanwhile_waits() -> None:
    world = begun(workers=2, restart={"maximum": 1, "backoff": "0", "on": ["any"]})
    world.launchers["store-0"].is_listening = False
    world.exit("store-0", 1)
    world.exit("worker-1", 1)
    assert world.running() == "store-0/2, worker-0/1"
    world.launchers["store-0"].is_listening = True
    world.settle()
    assert world.running() == "store-0/2, worker-0/1, worker-1/2"


def test_its_failure_for_good_fails_the_run_unless_it_is_not_required() -> None:
    world = begun()
    world.exit("store-0", 1)
    assert world.verdict() == "none"
    world.exit("store-0", 1)
    assert world.verdict().startswith("failed: store-0 failed (exit 1)")

    world = begun(services={"store": {**STORE["store"], "required": False}})
    world.exit("store-0", 1)
    world.exit("store-0", 1)
    assert world.verdict() == "none"
    world.exit("worker-0")
    assert world.verdict() == "succeeded: worker-0 succeeded"


def test_its_own_end_decides_nothing() -> None:
    world = begun()
    world.exit("store-0")
    assert world.states() == "worker-0 running, store-0 succeeded"
    assert world.verdict() == "none"


def test_it_runs_until_no_other_task_does() -> None:
    world = begun(workers=2, evaluator=True, ps=1)
    world.exit("worker-0")
    assert world.verdict() == "succeeded: worker-0 succeeded"
    world.exit("worker-1")
    assert world.running() == "evaluator-0/1, store-0/1"
    world.exit("evaluator-0")
    assert world.running() == ""
    assert world.states().endswith("store-0 stopped (run finished)")


def test_the_restart_policy_is_its_own_then_the_clusters_then_any_failure() -> None:
    def policy(**args: Any) -> Restart:
        job = spec(workers=1, **args).job("store")
        assert job is not None
        return job.restart

    store = {"command": ["redis-server"]}
    assert policy(services={"store": store}) == Restart(on=("any",))
    assert policy(services={"store": store}, restart={"on": ["oom"]}) == Restart(on=("oom",))
    assert policy(services={"store": {**store, "restart": {"maximum": 9}}}) == Restart(9, on=("any",))


def test_command_and_env_are_part_of_the_run_and_the_count_is_not() -> None:
    def run_id(**settings: Any) -> str:
        return str(plan(workers=1, services={"store": {"command": ["redis-server"], **settings}}).run.id)

    assert run_id() == run_id(count=2, memory="1GiB")
    assert len({run_id(), run_id(command=["other"]), run_id(env={"A": "1"}), str(plan(workers=1).run.id)}) == 4


def test_placement_constraints_of_the_training_are_not_its_own() -> None:
    made = spec(workers=1, container={"placement": ["hostname:UNIQUE"]}, services=STORE)
    assert [job.container.placement for job in made.jobs] == [("hostname:UNIQUE",), ()]
