"""Dumps that a user asks for: which launchers are asked, for how long, and what is accepted of them."""

import json
from pathlib import Path

import pytest

from tests.unit.agent.served import TOKEN, Responses, Served, served
from tests.unit.cases import plan
from tests.unit.simulation import Launcher
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.control.dumps import OPEN_SECONDS, Dumps
from tfdeploy.agent.control.order_changes import OrderChanges
from tfdeploy.agent.launch.dump_sender import encoded
from tfdeploy.agent.model.sync import RUN, Order
from tfdeploy.agent.model.task_dump import MAX_BYTES, PythonThread, TaskDump
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.wire.rpc import CallError, task_token
from tfdeploy.backends.controller_calls import take_dumps
from tfdeploy.errors import BackendError, Unreachable

__all__ = ["served"]

DUMP = encoded(TaskDump("worker-0", 1, 0.5))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_task_sends_one_dump_for_each_request_and_none_after_a_while() -> None:
    clock = Clock()
    dumps = Dumps(OrderChanges(), clock)
    assert dumps.wanted("worker-0") == 0, "there is no request"
    assert dumps.request() == {"number": 1}
    assert [dumps.wanted("worker-0") for _ in range(2)] == [1, 1], "an order may be lost"
    dumps.put("worker-0", 1, DUMP)
    dumps.put("worker-9", 1, DUMP)
    assert dumps.wanted("worker-0") == 0
    assert dumps.wanted("worker-1") == 1
    assert list(dumps.arrived(1, [])["dumps"]) == ["worker-0"], "no task worker-9 was asked"
    assert dumps.arrived(1, ["worker-0"]) == {"dumps": {}}
    assert dumps.request() == {"number": 2}
    assert dumps.arrived(2, []) == {"dumps": {}}
    assert dumps.wanted("worker-0") == 2
    dumps.put("worker-0", 2, DUMP)
    assert list(dumps.arrived(1, [])["dumps"]) == ["worker-0"], "the first request gets the newer dump"
    clock.now += OPEN_SECONDS
    assert dumps.wanted("worker-1") == 0
    assert dumps.arrived(1, []) == {"dumps": {}}


def test_the_launcher_of_a_running_program_is_asked_and_woken(tmp_path: Path) -> None:
    controller, launcher = Controller(Record(tmp_path)), Launcher("worker-0")
    controller.submit_run(plan(workers=1).run)
    orders: list[Order] = []
    controller.dumps.request()
    while not orders or orders[-1].action != RUN or not orders[-1].dump:
        orders.append(controller.sync(launcher.report()))
        launcher.obey(orders[-1], 1.0)
        controller.tick()
        assert len(orders) < 10
    assert len(orders) > 2
    assert not any(order.dump for order in orders[:-1]), "the program did not run yet"
    before = controller._changes.wait(0)
    controller.dumps.request()
    assert controller._changes.wait(before) != before


def test_a_dump_that_is_too_long_is_refused_and_is_shortened_by_its_launcher(served: Served) -> None:
    stacks = [PythonThread(f"thread {number}", ["x" * 150] * 30) for number in range(40)]
    dump = TaskDump("worker-0", 1, python=stacks, notes=["x"])
    content = json.dumps(dump.to_dict()).encode()
    assert len(content) > MAX_BYTES
    with served.client(task_token(TOKEN, "worker-0")) as client:
        with pytest.raises(CallError, match=" 413 "):
            client.call("PUT", "/dump/worker-0/1", content)
        client.call("PUT", "/dump/worker-0/1", encoded(dump))
    short = TaskDump.from_dict(json.loads(encoded(dump)))
    assert short == TaskDump("worker-0", 1, notes=["x", "no Python stack: it is too long"])


def test_the_command_waits_until_all_have_arrived() -> None:
    one, other = ({"dumps": {name: TaskDump(name).to_dict()}} for name in ("worker-0", "worker-1"))
    calls = Responses({"number": 3}, {"dumps": {}}, one, other)
    dumps = take_dumps(calls, "test", ["worker-0", "worker-1"])
    assert dumps == {name: TaskDump(name) for name in ("worker-0", "worker-1")}
    assert calls.responses == []


def test_a_controller_that_does_not_respond_or_is_older_is_reported() -> None:
    with pytest.raises(Unreachable, match="tfdeploy explain"):
        take_dumps(Responses(ConnectionRefusedError()), "test", ["worker-0"])
    with pytest.raises(BackendError, match="pulumi up"):
        take_dumps(Responses(CallError("POST /dumps: 404 unknown call")), "test", ["worker-0"])
