"""What every backend refuses of a plan, and what a restart by request does to a training, in words; a backend by its name."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import BOX, inventory, spec
from tests.unit.simulation import World
from tfdeploy.backends.backend import load
from tfdeploy.backends.task_access import lost_in_memory, to_restart
from tfdeploy.backends.validate import refuse_elastic_on_machines, refuse_same_ports
from tfdeploy.errors import BackendError, SpecError
from tfdeploy.plan.plan import make_plan
from tfdeploy.spec.backends import BACKENDS


def test_in_the_network_of_several_machines_no_worker_can_be_added() -> None:
    asked = spec(ps=1, workers=2, elastic={"max": 4}, container={"network": "host"})
    refuse_elastic_on_machines(asked, make_plan(asked, inventory(asked)))
    machines = (BOX, replace(BOX, name="other"))
    with pytest.raises(SpecError) as error:
        refuse_elastic_on_machines(asked, make_plan(asked, inventory(asked, *machines)))
    assert error.value.where == "mnist: elastic"
    fixed = spec(ps=1, workers=2, container={"network": "host"})
    refuse_elastic_on_machines(fixed, make_plan(fixed, inventory(fixed, *machines)))


def test_two_tasks_of_a_machine_have_different_ports_also_workers_that_do_not_exist_yet() -> None:
    def check(ps_port: int, **args: Any) -> None:
        jobs = {"worker": {"port": 25_000}, "ps": {"port": ps_port}}
        asked = spec(ps=1, workers=2, jobs=jobs, **args)
        refuse_same_ports(make_plan(asked, inventory(asked)))

    check(25_003)
    check(25_004, elastic={"max": 4})
    with pytest.raises(SpecError, match="ps-0 and worker-3 would use port 25003 on box"):
        check(25_003, elastic={"max": 4})
    with pytest.raises(SpecError, match="ps-0 and worker-1 would use port 25001 on box"):
        check(25_001)


BREAKS = (
    "The changes since the last checkpoint of the variables in its memory are lost: "
    "the sessions of the other tasks fail, and resume from that checkpoint."
)
ALONE = "The changes since the last checkpoint are lost: it resumes from that checkpoint."


@pytest.mark.parametrize(
    ("asked", "hostname", "says"),
    [
        ({"ps": 1, "workers": 1}, "ps-0", [BREAKS]),
        ({"ps": 1, "workers": 1}, "worker-0", []),
        ({"workers": 1, "tensorboard": True}, "worker-0", [ALONE]),
        ({"workers": 1, "tensorboard": True}, "tensorboard-0", []),
        ({"chief": 1, "workers": 0}, "chief-0", [ALONE]),
        ({"chief": 1, "workers": 1}, "worker-0", []),
        ({"workers": 2}, "worker-1", []),
    ],
)
def test_what_is_in_memory_alone_is_said_to_be_lost(asked: dict[str, Any], hostname: str, says: list[str]) -> None:
    made = World(**asked)
    made.come()
    assert lost_in_memory(made.job, hostname) == says
    assert lost_in_memory(None, hostname) == []
    made.exit(hostname)
    assert lost_in_memory(made.job, hostname) == [], "after the task's end"


def test_a_worker_of_an_elastic_run_that_has_failed_may_be_restarted() -> None:
    made = World(ps=1, workers=2, elastic={"max": 2}, restart={"maximum": 0})
    made.come()
    made.exit("worker-1", 1)
    assert to_restart(made.job, cluster_ref("local"), "worker-1").hostname == "worker-1"
    made.exit("worker-0")
    with pytest.raises(BackendError, match="has ended"):
        to_restart(made.job, cluster_ref("local"), "worker-1")


def test_each_backend_is_found() -> None:
    assert all(load(name) is load(name) for name in BACKENDS)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tfdeploy.backends.docker")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(SpecError, match=r"needs the package docker, .* `make setup-docker` in a clone .*\[docker\]'"):
        load("docker")


@pytest.mark.parametrize(("platform", "shown"), [("darwin", "macOS"), ("win32", "Windows"), ("freebsd14", "freebsd14")])
def test_local_needs_linux(platform: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(
        SpecError, match=f"backend: 'local' needs Linux, and this is {shown}. Run the tasks as containers"
    ):
        load("local")
    load("docker")
