"""What is refused of a cluster of containers, by what an engine has, and of what is only warned."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, ImageNotFound

from tests.unit.cases import BOX, inventory, spec
from tfdeploy.backends.container_layout import refuse_targets
from tfdeploy.backends.docker import containers, validate
from tfdeploy.backends.docker.validate import checkpoint_warnings
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import make_plan
from tfdeploy.plan.scheduler import Machine

IMAGES: dict[str, Any] = {
    "here": {"Config": {"Entrypoint": ["python"], "Cmd": ["a.py"]}},
    "bare": {"Config": {"Entrypoint": None, "Cmd": None}},
}


class Api:
    """Two nodes, of which one is drained, and two images."""

    def __init__(self, drained: str) -> None:
        self._drained = drained

    def nodes(self) -> list[dict[str, Any]]:
        states = {name: "drain" if name == self._drained else "active" for name in ("manager", "other")}
        return [
            {"ID": name, "Spec": {"Availability": state}, "Description": {"Hostname": name}}
            for name, state in states.items()
        ]

    def inspect_image(self, name: str) -> dict[str, Any]:
        if name not in IMAGES:
            raise ImageNotFound(name)
        return dict(IMAGES[name])

    def inspect_distribution(self, name: str) -> None:
        if name != "in-registry":
            raise APIError("denied", explanation="denied")


def swarm(drained: str = "", host: str = "unix:///d.sock", in_use: str = "") -> Any:
    def call(ask: Callable[[Api], Any]) -> Any:
        return ask(Api(drained))

    services = {"a": {"Spec": {"TaskTemplate": {"ContainerSpec": {"Image": in_use}}}}}
    engine = SimpleNamespace(host=host, swarm_info=lambda: {"NodeID": "manager"}, call=call)
    return SimpleNamespace(engine=engine, services=lambda: services)


def warnings(on: dict[str, str], machines: int = 1, **args: Any) -> str:
    """The warnings, or the argument that is refused."""
    asked = spec(
        **{"backend": "docker", "workers": 1, **args, "container": {"image": "here", **args.get("container", {})}}
    )
    made = make_plan(asked, inventory(asked, *(replace(BOX, name=f"m{number}") for number in range(machines))))
    try:
        found = validate.refuse(swarm(**on), asked, made, ["train.py"], {})
    except SpecError as error:
        return error.where.removeprefix("mnist: ")
    notices = containers.version_notices(asked, containers.installed_version())
    return "\n".join(line for line in found if line not in notices)


MISSING = "image gone is not on the manager and could not be found in its registry (denied)"
OPEN = "docker.host (tcp://d:2375) is not protected by TLS"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, ""),
        ({"on": {"drained": "other"}}, ""),
        ({"on": {"drained": "manager"}}, "docker.host"),
        ({"on": {"host": "tcp://d:2375"}}, OPEN),
        ({"docker": {"encrypted": True}}, ""),
        ({"docker": {"encrypted": True}, "container": {"network": "host"}}, "docker.encrypted"),
        ({"requirements": ["six"]}, ""),
        ({"requirements": ["six"], "machines": 2}, "container.registry"),
        ({"requirements": ["six"], "machines": 2, "container": {"registry": "r.example/team"}}, ""),
        ({"machines": 2}, ""),
        ({"container": {"build": "/nowhere", "image": None}}, "container.build"),
        ({"container": {"image": "in-registry"}}, ""),
        ({"container": {"image": "gone"}}, "container.image"),
        ({"container": {"image": "gone"}, "machines": 2}, MISSING),
        ({"container": {"image": "gone"}, "on": {"in_use": "gone"}}, MISSING),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_and_what_may_not_is_a_warning(args: dict[str, Any], said: str) -> None:
    found = warnings(**{"on": {}, **args})
    assert found.startswith(said)
    assert bool(found) == bool(said)


@pytest.mark.parametrize("target", ["/run", "/run/tfdeploy/", "/run/tfdeploy/secrets", "/tmp/tfdeploy", "/"])
def test_no_mount_hides_what_tfdeploy_needs(target: str) -> None:
    refuse_targets("m", ["/runs", "/tmp/tfdeploy2", "/data"])
    with pytest.raises(SpecError, match=f"m: {target} is reserved for tfdeploy"):
        refuse_targets("m", ["/data", target])


def test_a_folder_must_exist_where_the_engine_is_on_this_machine(tmp_path: Path) -> None:
    validate.refuse_folder("m", str(tmp_path), swarm().engine)
    validate.refuse_folder("m", "/nowhere", swarm(host="ssh://d").engine)
    with pytest.raises(SpecError, match="m: the folder /nowhere does not exist on this machine"):
        validate.refuse_folder("m", "/nowhere", swarm().engine)


@pytest.mark.parametrize(
    ("container", "wrong"),
    [
        ({"image": "gone"}, "'gone', which is not on the engine, is not known"),
        ({"image": "bare"}, "the image 'bare' does not have an entry point"),
        ({"build": "."}, "an image that is not built yet is not known"),
    ],
)
def test_without_a_command_the_entry_point_of_an_image_must_be_known(container: dict[str, str], wrong: str) -> None:
    engine = swarm().engine
    assert validate.entry_point(engine, spec(workers=1, container={"image": "here"})) == ("python", "a.py")
    with pytest.raises(SpecError, match=f"mnist: command: is missing, and .*{wrong}"):
        validate.entry_point(engine, spec(workers=1, container=container))


MACHINES = [replace(BOX, name=name) for name in ("m0", "m1")]
REASON = "train_dir is not set, so each machine has its own volume for checkpoints"
REMEDY = "Set train_dir to a folder that all machines share"
MOVES = f"{REASON}, and a task that restarts finds only the checkpoints of its machine. {REMEDY}"
SEVERAL = f"{REASON}, and no machine has all checkpoints. {REMEDY}"


@pytest.mark.parametrize(
    ("workers", "machines", "task_machines", "warnings"),
    [
        (1, MACHINES, {}, []),
        (2, MACHINES, {}, [SEVERAL]),
        (2, MACHINES, {"worker-0": "m0", "worker-1": "m1"}, [SEVERAL]),
        (2, MACHINES, {"worker-0": "m0"}, [f"worker-1 is added on m1. {MOVES}"]),
        (1, MACHINES, {"worker-0": "m0", "worker-1": "m1"}, [f"worker-1 is removed from m1. {MOVES}"]),
        (1, MACHINES[1:], {"worker-0": "m0"}, [f"worker-0 moves from m0 to m1. {MOVES}"]),
        (2, MACHINES[:1], {"worker-0": "m0"}, []),
        (1, MACHINES[:1], {"worker-0": "m0", "worker-1": "m0"}, []),
    ],
)
def test_checkpoints_on_several_machines_are_warned_of(
    workers: int, machines: list[Machine], task_machines: dict[str, str], warnings: list[str]
) -> None:
    requested = spec(workers=workers)
    existing = inventory(requested, *machines, train_dir="/train", data_dir="", task_machines=task_machines)
    assert checkpoint_warnings(make_plan(requested, existing), task_machines) == warnings
