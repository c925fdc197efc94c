"""The services of tasks and of the controller: their text, what is never in it, and what changes their hash."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cases import changed_lines, check_golden
from tests.unit.props import CANARY, cluster, dependencies, reference, run_props, task_props
from tfdeploy.backends.docker.labels import HOSTNAME_LABEL, PORT_LABEL, SPEC_HASH_LABEL, cluster_labels
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
        secrets={
            "MY-KEY": reference("s1 mnist-secret-MY-KEY"),
            "API_KEY": reference("s2 mnist-secret-API_KEY"),
        },
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
    """A service as the golden files have it."""
    return json.dumps({"name": service.name, "labels": service.labels, **service.template}, indent=1)


@pytest.mark.parametrize(
    ("golden", "service"),
    [
        ("service-task-overlay", task_service(task_props())),
        ("service-controller-overlay", controller_service(run_props())),
    ],
)
def test_the_service_is_that_of_the_golden_file(golden: str, service: Service) -> None:
    check_golden(golden, text(service))


@pytest.mark.parametrize(
    ("golden", "plain", "service"),
    [
        ("service-task-overlay-full", task_service(task_props()), task_service(task_props(CONTAINER, **FULL))),
        ("service-task-host", task_service(task_props()), task_service(task_props(ON_HOST))),
        ("service-controller-host", controller_service(run_props()), controller_service(run_props(ON_HOST))),
    ],
)
def test_what_another_service_has_is_that_of_the_golden_file(golden: str, plain: Service, service: Service) -> None:
    check_golden(golden, changed_lines(text(plain), text(service)))


@pytest.mark.parametrize(
    "service",
    [
        task_service(task_props(CONTAINER, **FULL)),
        controller_service(run_props(CONTAINER, dependencies=FULL["dependencies"])),
    ],
)
def test_no_value_of_a_secret_is_in_a_service(service: Service) -> None:
    assert CANARY not in text(service)


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


OTHER_CONTAINERS: list[dict[str, Any]] = [
    {"image": "other"},
    {"user": "root"},
    {"mounts": CONTAINER["mounts"][:1]},
    {"shm_size": 2 * 1024**3},
    {"network": "host", "controller_address": "10.0.0.1:20001"},
]
OTHER_PROPS: list[dict[str, Any]] = [
    *({"limits": {name: value}} for name, value in {"memory": 1024**3, "cpus": 0.5, "gpus": 1, "nice": 5}.items()),
    {"port": 2300},
    {"grace": 300.0},
    {"machine": "other"},
    {"dependencies": dependencies(agent=reference("a2 mnist-agent-2"))},
    {"dependencies": dependencies(launcher_token=reference("t3 mnist-launcher-token-2"))},
    {"dependencies": dependencies(network="n2")},
    {"dependencies": dependencies(image="built")},
]


@pytest.mark.parametrize("change", OTHER_CONTAINERS, ids=str)
def test_another_setting_of_the_container_changes_the_hash(change: dict[str, Any]) -> None:
    assert spec_hash(task_service(task_props({"image": "mine", **change}))) != spec_hash(
        task_service(task_props({"image": "mine"}))
    )


@pytest.mark.parametrize("change", OTHER_PROPS, ids=str)
def test_another_setting_of_the_task_changes_the_hash(change: dict[str, Any]) -> None:
    assert spec_hash(task_service(task_props(**change))) != spec_hash(task_service(task_props()))


@pytest.mark.parametrize("change", [{"constraint": "id==node2"}, {"image": "other"}, ON_HOST], ids=str)
def test_another_setting_of_the_controllers_container_changes_the_hash(change: dict[str, Any]) -> None:
    assert spec_hash(controller_service(run_props(change))) != spec_hash(controller_service(run_props()))


def test_a_new_run_with_new_code_and_secrets_does_not_change_the_controller() -> None:
    run, elsewhere = {"id": "ba9876543210", "env": {"A": "1"}}, "/elsewhere"
    other = run_props(run=run, code_folder=elsewhere, code_without=["/a"], secrets={}, token="other")
    assert text(controller_service(other)) == text(controller_service(run_props()))


def test_settings_that_the_launcher_does_not_use_do_not_change_the_service() -> None:
    other = task_props(
        gpus=["1"], grace=29.0, agent="2", token="other", cluster={**cluster(), "home": "tcp://other:2376"}
    )
    assert text(task_service(other)) == text(task_service(task_props()))


@pytest.mark.parametrize(
    ("grace", "seconds"), [(0.0, 60.0), (10.0, 60.0), (30.0, 60.0), (30.1, 120.0), (90.0, 120.0), (91.0, 240.0)]
)
def test_the_engine_waits_longer_than_the_launcher_in_powers_of_two(grace: float, seconds: float) -> None:
    assert stop_timeout(grace) == seconds


@given(st.floats(0, 366 * 24 * 3600.0))
def test_a_launcher_is_never_killed_before_its_grace_is_over(grace: float) -> None:
    assert stop_timeout(grace) >= grace + 30.0


@pytest.mark.parametrize(
    ("service", "hostname"), [(task_service(task_props()), "worker-1"), (controller_service(run_props()), "controller")]
)
def test_name_hostname_and_alias_are_stable(service: Service, hostname: str) -> None:
    assert service.name == f"mnist-k3v9x2abcd-{hostname}"
    assert service.template["ContainerSpec"]["Hostname"] == hostname
    assert service.template["Networks"][0]["Aliases"] == [hostname]
    assert service.labels[HOSTNAME_LABEL] == hostname
    assert cluster_labels(cluster()).items() <= service.labels.items()


def launched(service: Service) -> dict[str, Any]:
    """The settings of a launcher."""
    settings: dict[str, Any] = json.loads(service.template["ContainerSpec"]["Command"][-1])
    return settings


def test_on_the_overlay_network_a_task_has_the_default_port_and_its_hostname() -> None:
    assert (launched(task_service(task_props()))["port"], launched(task_service(task_props()))["host"]) == (
        2222,
        "worker-1",
    )
    assert launched(task_service(task_props(port=2300)))["port"] == 2300


def test_on_the_host_network_the_launcher_chooses_port_and_address() -> None:
    assert (
        launched(task_service(task_props(ON_HOST)))["port"],
        launched(task_service(task_props(ON_HOST)))["host"],
    ) == (0, "")
    assert launched(task_service(task_props(ON_HOST, port=2300)))["port"] == 2300


def test_capabilities_are_dropped() -> None:
    assert "CapabilityDrop" not in task_service(task_props(ON_HOST)).template["ContainerSpec"]
    dropping = task_service(task_props({**ON_HOST, "dropped_capabilities": ["CAP_NET_RAW"]}))
    assert dropping.template["ContainerSpec"]["CapabilityDrop"] == ["CAP_NET_RAW"]


def test_a_connection_to_a_machine_that_vanished_ends_where_the_network_is_the_containers_own() -> None:
    assert task_service(task_props()).template["ContainerSpec"]["Sysctls"] == {"net.ipv4.tcp_retries2": "8"}
    assert "Sysctls" not in task_service(task_props(ON_HOST)).template["ContainerSpec"]


def test_a_task_without_gpus_does_not_see_any() -> None:
    assert "NVIDIA_VISIBLE_DEVICES=void" in task_service(task_props()).template["ContainerSpec"]["Env"]
    assert task_service(task_props()).template["Resources"]["Reservations"] == {}
    with_gpus = task_service(task_props(CONTAINER, limits={"gpus": 2})).template
    assert "NVIDIA_VISIBLE_DEVICES=void" not in with_gpus["ContainerSpec"]["Env"]
    reserved = [{"DiscreteResourceSpec": {"Kind": "NVIDIA-GPU", "Value": 2}}]
    assert with_gpus["Resources"]["Reservations"]["GenericResources"] == reserved


@pytest.mark.parametrize("cpus", [0.001, 0.1, 0.29, 0.57, 1.1, 2.0, 64.0])
def test_the_limit_of_processors_is_exact(cpus: float) -> None:
    assert task_service(task_props(limits={"cpus": cpus})).template["Resources"]["Limits"]["NanoCPUs"] == round(
        cpus * 1e9
    )


def test_the_address_of_a_manager_that_was_just_created_replaces_the_placeholder() -> None:
    late: dict[str, Any] = {"network": "host", "controller_address": f"{MANAGER_PLACEHOLDER}:20000"}
    manager = dependencies(manager="172.31.0.9")
    assert launched(task_service(task_props(late, dependencies=manager)))["controller"] == "172.31.0.9:20000"
    assert launched(task_service(task_props(dependencies=manager)))["controller"] == "controller:2220"
    controller = controller_service(run_props(late, dependencies=manager))
    assert controller.template["ContainerSpec"]["Command"][-3] == "172.31.0.9:20000"
    assert controller.labels[PORT_LABEL] == "20000"
    assert MANAGER_PLACEHOLDER not in text(controller) + text(task_service(task_props(late, dependencies=manager)))


@pytest.mark.parametrize(
    "make",
    [
        lambda manager: task_service(task_props(dependencies=manager)),
        lambda manager: controller_service(run_props(dependencies=manager)),
    ],
)
def test_the_manager_does_not_change_a_service_without_the_placeholder(
    make: Callable[[dict[str, str]], Service],
) -> None:
    assert text(make(dependencies(manager="172.31.0.9"))) == text(make(dependencies()))
