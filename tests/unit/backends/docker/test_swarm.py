"""Services are created, updated and restarted; conflicts and missing services."""

from contextlib import nullcontext
from typing import Any, NoReturn, cast

import pytest
from docker.errors import APIError
from docker.errors import NotFound as EngineNotFound

from tests.unit.backends.docker.fake_engine import FakeApi
from tests.unit.props import task_props
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.docker import task_access
from tfdeploy.backends.docker.engine import engine
from tfdeploy.backends.docker.engine.engine import Engine, retry_conflicts
from tfdeploy.backends.docker.swarm import services
from tfdeploy.backends.docker.swarm import swarm as module
from tfdeploy.backends.docker.swarm.swarm import Swarm
from tfdeploy.errors import BackendError, NotFound

PROPS = task_props(hostname="worker-0", index=0)
CLUSTER: ClusterRef = PROPS["cluster"]


class Api(FakeApi):
    """The engine and the part of its API that updates services."""

    def __init__(self, *existing: dict[str, Any]) -> None:
        self.existing = list(existing)
        self.done: list[str] = []
        self.created: list[dict[str, Any]] = []
        self.states = ["running", "complete"]
        self.refuses: Any = None
        self.node = {"ID": "n1", "Description": {"Hostname": "box"}, "Status": {"State": "ready"}}

    def services(self, filters: Any) -> list[dict[str, Any]]:
        return self.existing

    def inspect_service(self, name: str) -> dict[str, Any]:
        return self.existing[0]

    def update_service(self, *args: Any, **kwargs: Any) -> None:
        self.done.append("end" if kwargs["mode"] == services.NO_TASK_MODE else "update")

    def remove_service(self, service_id: str) -> None:
        self.done.append("remove")

    def create_service(self, template: Any, **kwargs: Any) -> None:
        if kwargs["labels"] == self.refuses:
            raise APIError("400", explanation="not so")
        self.done.append("create")
        self.created.append(kwargs)

    def nodes(self) -> list[dict[str, Any]]:
        return [self.node]

    def tasks(self, filters: Any) -> list[dict[str, Any]]:
        self.done.append("look")
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return [{"ServiceID": "1", "Status": {"State": state}, "NodeID": "n1", "CreatedAt": ""}]


def service(**changed: Any) -> dict[str, Any]:
    """The task's service in the form of the Engine API, with other limits or labels."""
    desired = services.task_service(cast(Any, {**PROPS, **changed}))
    spec = {
        "Name": desired.name,
        "Labels": dict(desired.labels),
        "TaskTemplate": dict(desired.template),
        "Mode": desired.mode,
    }
    return {"ID": "1", "Version": {"Index": 7}, "Spec": spec}


def swarm(api: Api) -> Swarm:
    return Swarm(cast(Engine, api), CLUSTER)


@pytest.mark.parametrize(
    ("existing", "done"),
    [
        (service(), []),
        (service(cluster={**CLUSTER, "stack": "renamed"}), []),  # labels alone are not worth a restart
        (service(limits={"memory": 7}), ["end", "look", "look", "remove", "create"]),
    ],
)
def test_a_changed_task_gets_its_new_container_after_the_old_one_has_ended(
    existing: dict[str, Any], done: list[str]
) -> None:
    """A Swarm starts the new container of a job beside the old one when it updates the service."""
    api = Api(existing)
    swarm(api).apply(services.task_service(PROPS))
    assert api.done == done
    assert all(created["mode"] == services.TASK_MODE for created in api.created)
    assert services.TASK_MODE == {"ReplicatedJob": {"MaxConcurrent": 1, "TotalCompletions": 1}}, "it runs once"


def test_a_task_keeps_its_service_where_the_engine_refuses_the_new_one() -> None:
    api = Api(service(limits={"memory": 7}))
    former = services.task_service(cast(Any, {**PROPS, "limits": {"memory": 7}}))
    api.refuses = services.task_service(PROPS).labels
    with pytest.raises(BackendError, match="not so"):
        swarm(api).apply(services.task_service(PROPS))
    assert [created["labels"] for created in api.created] == [former.labels]


def test_an_ended_task_is_started_by_the_same_service_again() -> None:
    api = Api(service())
    api.states = ["complete"]
    swarm(api).start_ended(["worker-0", "worker-7"])
    assert [act for act in api.done if act != "look"] == ["remove", "create"]
    api = Api(service())
    swarm(api).start_ended(["worker-0"])
    assert "remove" not in api.done


def test_a_restart_is_the_same_service_again() -> None:
    api = Api(service())
    by_id = api.inspect_service
    api.inspect_service = lambda name: by_id(name) if name == "1" else raise_not_found()  # type: ignore[method-assign]
    swarm(api).restart("worker-0")
    assert api.done == ["end", "look", "look", "remove", "create"]
    assert api.created[0]["labels"] == service()["Spec"]["Labels"]
    with pytest.raises(NotFound, match=r"worker-0 of mnist"):
        swarm(Api()).restart("worker-0")


@pytest.mark.parametrize(
    ("states", "node", "has_ended"),
    [
        ([], "ready", False),  # no container has started yet
        (["complete"], "ready", True),
        (["complete", "running"], "ready", False),
        (["running"], "down", True),  # on the machines that respond
    ],
)
def test_a_helper_has_ended_when_all_its_containers_have(states: list[str], node: str, has_ended: bool) -> None:
    api = Api(service())
    api.node = {**api.node, "Status": {"State": node}}
    tasks = [{"ServiceID": "1", "Status": {"State": state}, "NodeID": "n1"} for state in states]
    api.tasks = lambda filters: tasks  # type: ignore[method-assign]
    assert swarm(api).has_ended("worker-0") == has_ended
    assert swarm(Api()).has_ended("worker-0")


@pytest.mark.parametrize(
    ("memory", "state", "is_as_defined"), [(0, "running", True), (7, "running", False), (0, "starting", False)]
)
def test_a_task_runs_as_defined_with_this_definition_alone(memory: int, state: str, is_as_defined: bool) -> None:
    api, desired = Api(service()), services.task_service(PROPS)
    template = services.task_service(cast(Any, {**PROPS, "limits": {"memory": memory}})).template
    tasks = [{"ServiceID": "1", "Status": {"State": name}, "Spec": template} for name in ("complete", state)]
    api.tasks = lambda filters: tasks  # type: ignore[method-assign]
    assert swarm(api).runs_as_defined(desired) == is_as_defined


def raise_not_found() -> NoReturn:
    raise EngineNotFound("no such service")


@pytest.mark.parametrize(("state", "is_created"), [("running", False), ("orphaned", False), ("shutdown", True)])
def test_a_container_on_a_machine_that_does_not_respond_has_not_ended(
    monkeypatch: pytest.MonkeyPatch, state: str, is_created: bool
) -> None:
    """A Swarm calls it orphaned when the node has been down for a day; one that was removed from the Swarm has no node."""
    monkeypatch.setattr(module, "_STOP_MARGIN", -1e9)
    api = Api(service(limits={"memory": 7}))
    api.states, api.node = [state], {**api.node, "Status": {"State": "down"}}
    with nullcontext() if is_created else pytest.raises(BackendError, match="its container did not end"):
        swarm(api).apply(services.task_service(PROPS))
    assert ("create" in api.done) == is_created
    api.node = {**api.node, "ID": "n2"}
    api.states = ["orphaned"]
    swarm(api).apply(services.task_service(PROPS))
    assert api.done[-1] == "create"


@pytest.mark.parametrize(("conflicts", "attempts"), [(2, 3), (99, 10)])
def test_an_update_is_retried_after_a_conflict(conflicts: int, attempts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def update() -> bool:
        calls.append("update")
        if len(calls) <= conflicts:
            raise APIError("500", explanation="rpc error: code = Unknown desc = update out of sequence")
        return True

    monkeypatch.setattr(engine, "_UPDATE_PAUSE", 0.0)
    with nullcontext() if attempts > conflicts else pytest.raises(BackendError, match="m0: something else updates it"):
        retry_conflicts("m0", update)
    assert len(calls) == attempts


def test_a_task_that_was_stopped_and_cannot_start_again_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api, access = Api(service()), task_access.DockerAccess(cast(Any, None))
    api.refuses = service()["Spec"]["Labels"]
    api.inspect_service = lambda name: service() if name == "1" else raise_not_found()  # type: ignore[method-assign]
    monkeypatch.setattr(access, "_swarm", lambda cluster: swarm(api))
    monkeypatch.setattr(access, "_machine_engine", lambda *_: None)
    monkeypatch.setattr(task_access, "exclusive_volumes", lambda *_: ["own"])
    monkeypatch.setattr("tfdeploy.backends.docker.cleanup.remove_volumes", lambda *_: None)
    with pytest.raises(
        BackendError, match=r"worker-0 was stopped and .*: not so. `pulumi up --refresh` starts it again"
    ):
        access.start_again(CLUSTER, "worker-0", replace=True)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], (True, "scheduled", "")),
        (["rejected"], (False, "rejected", "no such image")),
        (["rejected", "preparing"], (False, "rejected", "no such image")),
        (["rejected", "running"], (True, "running", "no such image")),
        (["complete"], (False, "complete", "")),
    ],
)
def test_the_state_of_a_service_has_the_reason_of_its_last_task(
    states: list[str], expected: tuple[bool, str, str]
) -> None:
    tasks: Any = [{"Status": {"State": state, "Err": "no such image"}} for state in states]
    task = module._engine_task(tasks)
    assert (task.alive, task.state, task.reason) == expected
