"""The services of tasks and of the controller: their text, what is never in it, and what changes their hash."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cases import changed_lines, check_golden
from tests.unit.props import cluster, dependencies, reference, run_props, task_props
from tfdeploy.backends.docker.labels import PORT_LABEL, SPEC_HASH_LABEL, cluster_labels
from tfdeploy.backends.docker.swarm.services import (
    MANAGER_PLACEHOLDER,
    Service,
    controller_service,
    stop_timeout,
    task_service,
)
from tfdeploy.backends.docker.volumes import bind, volume

FULL: dict[str, Any] = {
    "limits": {"memory": 2 * 1024**3, "cpus": 1.5, "gpus": 2},
    "gpus": ["0", "1"],
    "port": 2300,
    "dependencies": dependencies(
        secrets={"MY-KEY": reference("s1 mnist-secret-MY-KEY"), "API_KEY": reference("s2 mnist-secret-API_KEY")},
        image="registry.example.com/mnist-k3v9x2abcd:0123456789abcdef",
    ),
}
CONTAINER: dict[str, Any] = {
    "user": "1000:1000",
    "mounts": [bind("/data", "/data", True), volume("x", "cache", "/cache", cluster_labels(cluster()))],
    "shm_size": 1024**3,
    "gpu_kind": "NVIDIA-GPU",
}
ON_HOST: dict[str, Any] = {"network": "host", "controller_address": "10.0.0.1:20001"}


def text(service: Service) -> str:
    content = {"name": service.name, "labels": service.labels, **service.template}
    return str(yaml.safe_dump(content, sort_keys=False, width=1_000)).rstrip("\n")


@pytest.mark.parametrize(
    ("golden", "plain", "service"),
    [
        ("service-task-overlay", None, task_service(task_props())),
        ("service-controller-overlay", None, controller_service(run_props())),
        ("service-task-overlay-full", task_service(task_props()), task_service(task_props(CONTAINER, **FULL))),
        ("service-task-host", task_service(task_props()), task_service(task_props(ON_HOST))),
        ("service-controller-host", controller_service(run_props()), controller_service(run_props(ON_HOST))),
    ],
)
def test_a_service_or_what_another_one_has_is_that_of_the_golden_file(
    golden: str, plain: Service | None, service: Service
) -> None:
    check_golden(golden, changed_lines(text(plain), text(service)) if plain else text(service))


def test_the_controller_does_not_get_the_secrets_of_the_user() -> None:
    service = controller_service(run_props(dependencies=FULL["dependencies"]))
    assert [item["SecretName"] for item in service.template["ContainerSpec"]["Secrets"]] == ["mnist-token"]


def turned(value: Any) -> Any:
    """The same content with the keys in reversed order."""
    if isinstance(value, dict):
        return {key: turned(item) for key, item in reversed(value.items())}
    return [turned(item) for item in value] if isinstance(value, list) else value


def spec_hash(service: Service) -> str:
    return service.labels[SPEC_HASH_LABEL]


def test_the_same_content_has_the_same_hash() -> None:
    props = task_props(CONTAINER, **FULL)
    assert spec_hash(task_service(props)) == spec_hash(task_service(turned(props)))
    assert spec_hash(controller_service(run_props(ON_HOST))) == spec_hash(
        controller_service(turned(run_props(ON_HOST)))
    )


@pytest.mark.parametrize(
    ("container", "props"),
    [
        ({"image": "other"}, {}),
        ({}, {"limits": {"nice": 5}}),
        ({}, {"grace": 300.0}),
        ({}, {"machine": "other"}),
        ({}, {"dependencies": dependencies(agent=reference("a2 mnist-agent-2"))}),
        ({}, {"dependencies": dependencies(launcher_token=reference("t3 mnist-launcher-token-2"))}),
    ],
    ids=str,
)
def test_another_setting_changes_the_hash(container: dict[str, Any], props: dict[str, Any]) -> None:
    """Those of user, shm_size, network, port and limits are in the golden files, with the hash."""
    assert spec_hash(task_service(task_props(container, **props))) != spec_hash(task_service(task_props()))


def test_a_new_run_and_what_the_launcher_does_not_use_change_neither_controller_nor_task() -> None:
    run, elsewhere = {"id": "ba9876543210", "env": {"A": "1"}}, "/elsewhere"
    other = run_props(run=run, code_folder=elsewhere, code_without=["/a"], secrets={}, token="other")
    assert text(controller_service(other)) == text(controller_service(run_props()))
    home = {**cluster(), "home": "tcp://other:2376"}
    task = task_props(gpus=["1"], grace=29.0, agent="2", token="other", cluster=home)
    assert text(task_service(task)) == text(task_service(task_props()))


@given(st.floats(0, 366 * 24 * 3600.0))
def test_a_launcher_is_never_killed_before_its_grace_is_over(grace: float) -> None:
    assert stop_timeout(grace) >= grace + 30.0


def launched(service: Service) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(service.template["ContainerSpec"]["Command"][-1])
    return settings


def test_the_address_of_a_manager_that_was_just_created_replaces_the_placeholder() -> None:
    late: dict[str, Any] = {"network": "host", "controller_address": f"{MANAGER_PLACEHOLDER}:20000"}
    manager = dependencies(manager="172.31.0.9")
    assert launched(task_service(task_props(late, dependencies=manager)))["controller"] == "172.31.0.9:20000"
    assert launched(task_service(task_props(dependencies=manager)))["controller"] == "controller:2220"
    controller = controller_service(run_props(late, dependencies=manager))
    assert controller.template["ContainerSpec"]["Command"][-3] == "172.31.0.9:20000"
    assert controller.labels[PORT_LABEL] == "20000"
    assert MANAGER_PLACEHOLDER not in text(controller) + text(task_service(task_props(late, dependencies=manager)))
