"""Three hundred launchers at one controller, by real HTTP."""

from pathlib import Path

from tests.components.many_launchers import launchers_of, running_controller
from tests.waiting import until
from tfdeploy.agent.wire.rpc import Client

TASKS = 300


def test_three_hundred_tasks_start_soon_and_cost_little_then(tmp_path: Path) -> None:
    with running_controller(tmp_path, TASKS) as controller:
        with launchers_of(controller) as groups:
            until(lambda: all(launcher.running for group in groups for launcher in group.launchers), "all run", 120.0)
            used = controller.process.cpu_times()
            assert used.user + used.system <= 30.0
            with controller.client() as client:
                until(lambda: _running(client) == TASKS, "the controller knows")
        assert [error for group in groups for error in group.errors] == []


def _running(client: Client) -> int:
    tasks = client.json("POST", "/view", {})["run_state"]["tasks"]
    return sum(task["state"] == "running" for task in tasks.values())
