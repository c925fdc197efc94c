"""tf.data service: its workers start, end, are added and removed while the other tasks run, and an epoch ends without lost ones."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.cases import plan
from tests.unit.simulation import World, running
from tfdeploy.agent.launch import builtin_programs
from tfdeploy.agent.launch.builtin_programs import LOST_SECONDS, DataDispatcher, DataTask, LostWorkers, end_parts
from tfdeploy.agent.launch.task_environment import environment
from tfdeploy.agent.model import events
from tfdeploy.agent.model.task_command import placeholders

RESTART = {"maximum": 1, "backoff": "0", "on": ["any"]}


def begun(workers: int = 2, **args: Any) -> World:
    world = running(workers=1, data_service={"workers": workers}, restart=RESTART, **args)
    world.launchers["data-dispatcher-0"].is_listening = True
    world.settle()
    world.events.clear()
    return world


def test_the_training_waits_for_the_dispatcher_and_not_for_its_workers() -> None:
    world = World(workers=1, data_service={"workers": 2})
    world.come("worker-0")
    assert world.states().startswith("worker-0 waiting (data-dispatcher-0)")
    world.come("data-dispatcher-0")
    world.launchers["data-dispatcher-0"].is_listening = True
    world.settle()
    assert world.running() == "data-dispatcher-0/1, worker-0/1"
    world.come("data-worker-1")
    assert world.running() == "data-dispatcher-0/1, data-worker-1/1, worker-0/1"


def test_a_data_worker_does_not_start_before_the_others_have_addresses() -> None:
    world = World(workers=1, data_service={"workers": 1})
    world.come("data-worker-0")
    world.come("data-dispatcher-0")
    assert world.running() == ""
    world.come("worker-0")
    assert "data-worker-0/1" in world.running()


def test_workers_are_added_and_removed_and_the_others_continue() -> None:
    world = begun()
    world.resize(workers=1, data_service={"workers": 3}, restart=RESTART)
    assert world.running() == "data-dispatcher-0/1, data-worker-0/1, data-worker-1/1, data-worker-2/1, worker-0/1"
    world.resize(workers=1, data_service={"workers": 1}, restart=RESTART)
    assert world.running() == "data-dispatcher-0/1, data-worker-0/1, worker-0/1"
    kinds = [event.kind for event in world.events]
    assert kinds.count(events.WORKERS_CHANGED) == 1
    assert not {events.TASKS_CHANGED, events.ADDRESS_CHANGED} & {*kinds}


def test_a_worker_that_is_lost_or_fails_starts_again_alone_also_at_another_address() -> None:
    world = begun()
    world.lose("data-worker-0")
    world.come("data-worker-0", port=31000)
    assert world.running() == "data-dispatcher-0/1, data-worker-0/2, data-worker-1/1, worker-0/1"
    book = world.launchers["data-worker-0"].address_book
    assert {entry.hostname: entry.address for entry in book}["data-worker-0"].endswith(":31000")
    world.exit("data-worker-1", 1)
    assert world.running() == "data-dispatcher-0/1, data-worker-0/2, data-worker-1/2, worker-0/1"
    assert events.ADDRESS_CHANGED not in [event.kind for event in world.events]


def test_a_worker_starts_again_while_the_controller_is_away() -> None:
    world = begun()
    assert world.fail_alone("data-worker-0")
    world.return_after(30.0)
    world.settle()
    assert world.running() == "data-dispatcher-0/1, data-worker-0/2, data-worker-1/1, worker-0/1"


def test_the_program_gets_the_dispatchers_address_and_none_of_a_worker() -> None:
    world = begun()
    book = world.launchers["worker-0"].address_book
    assert [entry.hostname for entry in book] == ["worker-0", "data-dispatcher-0"]
    dispatcher = world.job.address_book["data-dispatcher-0"]
    task = book[0]
    assert placeholders(book, task)["data_service"] == f"grpc://{dispatcher}"
    variables = environment(book, task, world.job.spec)
    assert variables["TFDEPLOY_DATA_SERVICE"] == f"grpc://{dispatcher}"
    assert "TFDEPLOY_DATA_WORKER_HOSTS" not in variables


def test_the_number_of_workers_is_not_part_of_the_run_and_the_service_is() -> None:
    def run_id(**args: Any) -> str:
        return str(plan(workers=1, **args).run.id)

    assert run_id(data_service={"workers": 1}) == run_id(data_service={"workers": 2})
    assert run_id(data_service={"workers": 1}) != run_id()


def test_the_part_of_a_lost_worker_ends_when_another_one_completes_the_epoch() -> None:
    lost, workers = LostWorkers(), ["a:1", "b:1"]
    tasks = {"a:1": [DataTask(7, 100)]}
    assert lost.observe(workers, {"b:1"}, 0.0) == []
    assert lost.observe(workers, {"a:1", "b:1"}, 5.0) == []
    assert lost.observe(workers, {"b:1"}, 10.0) == []
    assert lost.observe(workers, {"b:1"}, 9.0 + LOST_SECONDS) == []
    assert lost.observe(workers, {"b:1"}, 10.0 + LOST_SECONDS) == ["a:1"]
    assert lost.tasks_to_end(tasks, set()) == {"a:1": []}
    assert lost.tasks_to_end(tasks, {"b:1"}) == tasks


def test_a_worker_whose_part_has_ended_completes_no_epoch_before_the_next() -> None:
    lost = LostWorkers()
    lost.tasks_to_end({"a:1": [DataTask(7, 100)]}, {"b:1"})
    assert lost.tasks_to_end({"b:1": [DataTask(7, 101)]}, {"a:1"}) == {"b:1": []}
    assert lost.tasks_to_end({"b:1": [DataTask(8, 103)]}, {"a:1"}) == {"b:1": [DataTask(8, 103)]}


class Dispatcher:
    """In the place of the module `grpc`, and of TensorFlow's dispatcher: what it responds, and what it was sent."""

    RpcError = OSError

    def __init__(self, **responses: bytes) -> None:
        self.responses = responses
        self.requests: dict[str, bytes] = {}

    def insecure_channel(self, address: str) -> "Dispatcher":
        return self

    def unary_unary(self, path: str) -> Callable[..., bytes]:
        def call(request: bytes, timeout: float) -> bytes:
            name = path.rpartition("/")[2]
            self.requests[name] = request
            if name not in self.responses:
                raise OSError(name)
            return self.responses[name]

        return call


def test_the_calls_have_the_form_of_tensorflows_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    two_workers = b"\x0a\x05\x0a\x03a:1" + b"\x0a\x05\x0a\x03b:1"
    # path, task_id, numbers of 8 and 4 bytes, as later versions may have them, iteration_id, processing_mode_def
    wide = b"\x79" + bytes(8) + b"\x7d" + bytes(4)
    task = b"\x12\x02/d" + b"\x20\xd0\x0f" + wide + b"\x28\xb9\x17" + b"\x52\x02\x08\x01"
    served = Dispatcher(GetWorkers=two_workers, WorkerHeartbeat=b"\x0a\x1c" + task, WorkerUpdate=b"")
    monkeypatch.setitem(sys.modules, "grpc", served)
    dispatcher, lost = DataDispatcher("127.0.0.1:7000"), LostWorkers()
    assert dispatcher.tasks("a:1") == [DataTask(iteration=3001, task=2000)]
    for now in (0.0, LOST_SECONDS):
        end_parts(dispatcher, lost, lambda address: address == "b:1", now)
    assert served.requests["WorkerHeartbeat"] == b"\x0a\x03a:1"
    assert served.requests["WorkerUpdate"] == b"\x0a\x03a:1" + b"\x12\x05\x08\xd0\x0f\x10\x01"

    served.responses.pop("GetWorkers")
    with pytest.raises(builtin_programs.DispatcherError, match="GetWorkers"):
        dispatcher.workers()
