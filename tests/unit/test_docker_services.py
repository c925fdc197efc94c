"""A task, and the keeper, as services: their text, what is never in it, and what changes it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cases import check_golden
from tests.unit.props import CANARY, cluster, run_props, supplies, task_props
from tfdeploy.backends.docker import mounts, names
from tfdeploy.backends.docker.services import MANAGER, Service, keeper, stop_seconds, task

FULL: dict[str, Any] = {
    "memory": 2 * 1024**3,
    "cpus": 1.5,
    "gpus": "0,1",
    "port": 2300,
    "supplies": supplies(
        **{
            "secret-MY-KEY": "s1 mnist-secret-MY-KEY",
            "secret-API_KEY": "s2 mnist-secret-API_KEY",
            "image-worker": "registry.example.com/project_dev_mnist:0123456789abcdef",
        }
    ),
}
OUTFIT: dict[str, Any] = {
    "user": "1000:1000",
    "mounts": [mounts.bind("/data", "/data", True), mounts.volume("x", "cache", "/cache", names.labels(cluster()))],
    "shm_size": 1024**3,
    "gpu_kind": "NVIDIA-GPU",
}
ON_HOST: dict[str, Any] = {"network": "host", "keeper": "10.0.0.1:20001"}


def text(made: Service) -> str:
    """A service as people compare it."""
    return json.dumps({"name": made.name, "labels": made.labels, **made.template}, indent=1)


@pytest.mark.parametrize(
    ("golden", "made"),
    [
        ("service-task-overlay", task(task_props())),
        ("service-task-overlay-full", task(task_props(OUTFIT, **FULL))),
        ("service-task-host", task(task_props(ON_HOST))),
        ("service-keeper-overlay", keeper(run_props())),
        ("service-keeper-host", keeper(run_props(ON_HOST))),
    ],
)
def test_the_service_reads_as_kept(golden: str, made: Service) -> None:
    check_golden(golden, text(made))


@pytest.mark.parametrize(
    "made", [task(task_props(OUTFIT, **FULL)), keeper(run_props(OUTFIT, supplies=FULL["supplies"]))]
)
def test_no_value_of_a_secret_is_in_a_service(made: Service) -> None:
    assert CANARY not in text(made)


def test_the_keeper_gets_none_of_the_users_secrets() -> None:
    made = keeper(run_props(supplies=FULL["supplies"]))
    assert [item["SecretName"] for item in made.template["ContainerSpec"]["Secrets"]] == ["mnist-token"]


def turned(value: Any) -> Any:
    """The same content, its keys the other way round."""
    if isinstance(value, dict):
        return {key: turned(item) for key, item in reversed(value.items())}
    return [turned(item) for item in value] if isinstance(value, list) else value


def mark(made: Service) -> str:
    return made.labels[names.SPEC]


def test_the_same_content_has_the_same_mark() -> None:
    props = task_props(OUTFIT, **FULL)
    assert mark(task(props)) == mark(task(turned(props)))
    assert mark(keeper(run_props(ON_HOST))) == mark(keeper(turned(run_props(ON_HOST))))


OTHER_CONTAINERS: list[dict[str, Any]] = [
    {"image": "other"},
    {"user": "root"},
    {"mounts": OUTFIT["mounts"][:1]},
    {"shm_size": 2 * 1024**3},
    {"network": "host", "keeper": "10.0.0.1:20001"},
]
OTHER_PROPS: list[dict[str, Any]] = [
    {"memory": 1024**3},
    {"cpus": 0.5},
    {"gpus": "0"},
    {"port": 2300},
    {"grace": 300.0},
    {"machine": "other"},
    {"supplies": supplies(agent="a2 mnist-agent-2")},
    {"supplies": supplies(token="t2 mnist-token-2")},
    {"supplies": supplies(network="n2")},
    {"supplies": supplies(**{"image-worker": "built"})},
]


@pytest.mark.parametrize("change", OTHER_CONTAINERS, ids=str)
def test_another_outfit_is_another_mark(change: dict[str, Any]) -> None:
    assert mark(task(task_props({"image": "mine", **change}))) != mark(task(task_props({"image": "mine"})))


@pytest.mark.parametrize("change", OTHER_PROPS, ids=str)
def test_another_setting_is_another_mark(change: dict[str, Any]) -> None:
    assert mark(task(task_props(**change))) != mark(task(task_props()))


@pytest.mark.parametrize("change", [{"post": "id==node2"}, {"image": "other"}, ON_HOST], ids=str)
def test_another_outfit_of_the_keeper_is_another_mark(change: dict[str, Any]) -> None:
    assert mark(keeper(run_props(change))) != mark(keeper(run_props()))


def test_a_new_run_with_new_code_and_secrets_is_the_same_keeper() -> None:
    run, elsewhere = {"id": "ba9876543210", "env": {"A": "1"}}, "/elsewhere"
    other = run_props(run=run, code_folder=elsewhere, code_without=["/a"], secrets={}, token="other")
    assert text(keeper(other)) == text(keeper(run_props()))


def test_what_a_task_need_not_know_restarts_it_not() -> None:
    other = task_props(grace=29.0, agent="2", token="other", cluster={**cluster(), "home": "tcp://other:2376"})
    assert text(task(other)) == text(task(task_props()))


@pytest.mark.parametrize(
    ("grace", "seconds"), [(0.0, 60.0), (10.0, 60.0), (30.0, 60.0), (30.1, 120.0), (90.0, 120.0), (91.0, 240.0)]
)
def test_the_engine_waits_longer_than_the_launcher_in_steps_of_doubling(grace: float, seconds: float) -> None:
    assert stop_seconds(grace) == seconds


@given(st.floats(0, 366 * 24 * 3600.0))
def test_a_launcher_is_never_killed_before_its_grace_is_over(grace: float) -> None:
    assert stop_seconds(grace) >= grace + 30.0


@pytest.mark.parametrize(("service", "hostname"), [(task(task_props()), "worker-1"), (keeper(run_props()), "keeper")])
def test_name_hostname_and_alias_are_stable(service: Service, hostname: str) -> None:
    assert service.name == f"project_dev_mnist-{hostname}"
    assert service.template["ContainerSpec"]["Hostname"] == hostname
    assert service.template["Networks"][0]["Aliases"] == [hostname]
    assert service.labels[names.HOSTNAME] == hostname
    assert names.labels(cluster()).items() <= service.labels.items()


def launched(made: Service) -> dict[str, Any]:
    """What a launcher is told."""
    settings: dict[str, Any] = json.loads(made.template["ContainerSpec"]["Command"][-1])
    return settings


def test_on_the_overlay_a_task_has_tensorflows_port_and_its_own_name() -> None:
    assert (launched(task(task_props()))["port"], launched(task(task_props()))["host"]) == (2222, "worker-1")
    assert launched(task(task_props(port=2300)))["port"] == 2300


def test_on_the_host_a_task_finds_out_its_port_and_address() -> None:
    assert (launched(task(task_props(ON_HOST)))["port"], launched(task(task_props(ON_HOST)))["host"]) == (0, "")
    assert launched(task(task_props(ON_HOST, port=2300)))["port"] == 2300


def test_a_task_loses_the_capabilities_that_it_is_to_lose() -> None:
    assert "CapabilityDrop" not in task(task_props(ON_HOST)).template["ContainerSpec"]
    dropping = task(task_props({**ON_HOST, "cap_drop": ["CAP_NET_RAW"]}))
    assert dropping.template["ContainerSpec"]["CapabilityDrop"] == ["CAP_NET_RAW"]


def test_a_task_without_gpus_sees_none() -> None:
    assert "NVIDIA_VISIBLE_DEVICES=void" in task(task_props()).template["ContainerSpec"]["Env"]
    assert task(task_props()).template["Resources"]["Reservations"] == {}
    with_gpus = task(task_props(OUTFIT, gpus="0,1")).template
    assert "NVIDIA_VISIBLE_DEVICES=void" not in with_gpus["ContainerSpec"]["Env"]
    reserved = [{"DiscreteResourceSpec": {"Kind": "NVIDIA-GPU", "Value": 2}}]
    assert with_gpus["Resources"]["Reservations"]["GenericResources"] == reserved


@pytest.mark.parametrize("cpus", [0.001, 0.1, 0.29, 0.57, 1.1, 2.0, 64.0])
def test_processors_are_what_was_asked_for(cpus: float) -> None:
    assert task(task_props(cpus=cpus)).template["Resources"]["Limits"]["NanoCPUs"] == round(cpus * 1e9)


def test_a_manager_that_is_known_only_when_it_stands_is_put_into_the_keepers_address() -> None:
    late: dict[str, Any] = {"network": "host", "keeper": f"{MANAGER}:20000"}
    made = supplies(manager="172.31.0.9")
    assert launched(task(task_props(late, supplies=made)))["keeper"] == "172.31.0.9:20000"
    assert launched(task(task_props(supplies=made)))["keeper"] == "keeper:2220"
    kept = keeper(run_props(late, supplies=made))
    assert kept.template["ContainerSpec"]["Command"][-3] == "172.31.0.9:20000"
    assert kept.labels[names.PORT] == "20000"
    assert MANAGER not in text(kept) + text(task(task_props(late, supplies=made)))


@pytest.mark.parametrize(
    "make", [lambda made: task(task_props(supplies=made)), lambda made: keeper(run_props(supplies=made))]
)
def test_a_manager_that_no_address_names_changes_nothing(make: Callable[[dict[str, str]], Service]) -> None:
    assert text(make(supplies(manager="172.31.0.9"))) == text(make(supplies()))
