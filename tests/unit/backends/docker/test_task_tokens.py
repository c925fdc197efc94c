"""Each task gets its own token as a secret of the Swarm."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker.errors import APIError

from tests.unit.backends.docker.fake_engine import FakeApi
from tests.unit.props import CANARY, task_props
from tfdeploy.agent.wire.rpc import task_token
from tfdeploy.backends.base import TaskProps
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.labels import HOSTNAME_LABEL, ID_LABEL
from tfdeploy.backends.docker.swarm.services import TOKEN_FILE
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.errors import BackendError


class Api(FakeApi):
    """An engine with secrets and services."""

    def __init__(self) -> None:
        self.contents: dict[str, tuple[str, bytes, dict[str, str]]] = {}
        """Name to id, content and labels."""
        self.made: list[dict[str, Any]] = []

    def create_secret(self, name: str, data: bytes, labels: dict[str, str]) -> dict[str, str]:
        if name in self.contents:
            raise APIError("conflict", SimpleNamespace(status_code=409), "name conflicts")  # type: ignore[arg-type]
        self.contents[name] = f"id-{len(self.contents)}", data, labels
        return {"ID": self.contents[name][0]}

    def secrets(self, filters: dict[str, str]) -> list[dict[str, Any]]:
        """As the engine does, it finds those whose names begin so."""
        found = [(name, item) for name, item in self.contents.items() if name.startswith(filters["name"])]
        return [{"ID": item[0], "Spec": {"Name": name}} for name, item in reversed(found)]

    def create_service(self, template: dict[str, Any], **more: Any) -> None:
        self.made.append({"Spec": {"TaskTemplate": template, "Labels": more["labels"], "Name": more["name"]}})

    def services(self, filters: Any) -> list[dict[str, Any]]:
        return self.made

    def nodes(self) -> list[dict[str, Any]]:
        return []


def runner(api: Api) -> DockerTaskRunner:
    return DockerTaskRunner(engine=lambda cluster: cast(Engine, api))


def props(hostname: str = "worker-1", **changed: Any) -> TaskProps:
    """As the state has them: without the token of its launcher."""
    own = {name: value for name, value in task_props()["dependencies"].items() if name != "launcher_token"}
    return task_props(hostname=hostname, dependencies=own, **changed)


def mounted(service: dict[str, Any]) -> dict[str, str]:
    """The ids of the secrets that a service mounts, by file."""
    secrets = service["Spec"]["TaskTemplate"]["ContainerSpec"]["Secrets"]
    return {item["File"]["Name"]: item["SecretID"] for item in secrets}


def test_each_task_mounts_its_own_token_and_no_other() -> None:
    api = Api()
    for hostname in ("worker-0", "worker-1", "worker-10"):
        runner(api).create_task(props(hostname))
    contents = {identity: content.decode() for identity, content, _ in api.contents.values()}
    for service in api.made:
        hostname = service["Spec"]["Labels"][HOSTNAME_LABEL]
        assert contents[mounted(service)[TOKEN_FILE]] == task_token(CANARY, hostname)
    assert len(contents) == 3
    assert all(labels[ID_LABEL] == props()["cluster"]["id"] for *_, labels in api.contents.values())
    shown = json.dumps([api.made, [*api.contents]])
    assert not any(text in shown for text in (CANARY, *contents.values()))


def test_a_secret_that_exists_is_used_again() -> None:
    api = Api()
    api.create_secret("another", b"", {})
    for _ in range(2):
        runner(api).create_task(props("worker-1"))
    name = next(name for name in api.contents if name != "another")
    api.create_secret(f"{name}0", b"of another", {})
    runner(api).create_task(props("worker-1"))
    assert len({mounted(service)[TOKEN_FILE] for service in api.made}) == 1


def test_a_service_never_gets_the_token_of_the_user() -> None:
    api = Api()
    api.create_secret = lambda *_: (_ for _ in ()).throw(  # type: ignore[method-assign]
        APIError("no", SimpleNamespace(status_code=500), "no")  # type: ignore[arg-type]
    )
    with pytest.raises(BackendError):
        runner(api).create_task(props("worker-1"))
    assert api.made == []
