"""The program of people who come from Marathon on two machines: its image built, pushed and pulled, storage that both share."""

import re
from collections.abc import Callable, Iterator

import pytest

from tests.engine import nested as machines
from tests.engine.cli import docker
from tests.engine.nested import SHARED, Nested
from tests.engine.registry import Registry
from tests.engine.registry import registry as registries
from tests.integration.conftest import ROOT
from tests.programs.program import Program
from tfdeploy.backends.docker.images import DEFAULT

DIGITS = ROOT / "programs/mnist/train/digits.npz"


@pytest.fixture
def swarm(engine: str, tensorflow_image: str) -> Iterator[Nested]:
    """Two machines that share a folder with the data; the one that manages has TensorFlow's image under its own name."""
    with machines.nested(engine, ["m0", "m1"]) as found:
        found.load(tensorflow_image, "m0")
        docker(found.manager, "tag", tensorflow_image, DEFAULT)
        m0 = found.machines["m0"].container
        docker(engine, "exec", m0, "mkdir", "-p", f"{SHARED}/data", f"{SHARED}/train")
        docker(engine, "cp", DIGITS, f"{m0}:{SHARED}/data/mnist.npz")
        yield found


@pytest.fixture
def registry(swarm: Nested) -> Iterator[Registry]:
    """A registry where both machines reach it."""
    with registries(host=swarm.gateway) as found:
        yield found


def images(swarm: Nested, hostname: str, registry: Registry) -> set[str]:
    """The images of the registry's that a machine has."""
    command = ("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", f"{registry.address}/*/*")
    return set(docker(swarm.machines[hostname].engine, *command).split())


def on_swarm(program: Program, swarm: Nested) -> None:
    """Two ps and two workers, one of each on either machine; data and checkpoints in the folder that they share."""
    apart = {"placement": ["hostname:UNIQUE"]}
    program.set("data_dir", f"{SHARED}/data")
    program.set("train_dir", f"{SHARED}/train")
    program.set("train_steps", "60")
    program.configure(backend="docker", docker_host=swarm.manager, jobs={"ps": apart, "worker": apart})
    program.configure(log_lines=200, wait="8m")


def test_two_ps_on_two_machines_write_sharded_checkpoints(
    swarm: Nested, registry: Registry, programs: Callable[[str], Program], engine: str
) -> None:
    program = programs("marathon_mnist")
    on_swarm(program, swarm)
    program.configure(build="train", registry=f"{registry.address}/team")
    program.up()
    outputs = program.outputs()
    assert outputs["state"] == "succeeded", outputs["status"]
    assert 0 < outputs["final_loss"] < 1.5
    assert f"final loss {outputs['final_loss']:.4f}" in outputs["logs"]["worker-0"]
    places = {row["hostname"]: row["machine"] for row in outputs["tasks"]}
    assert {places["ps-0"], places["ps-1"]} == {places["worker-0"], places["worker-1"]} == {"m0", "m1"}
    (image,) = images(swarm, "m0", registry)
    assert images(swarm, "m1", registry) == {image}, "pushed by the one, pulled by the other"

    m1 = swarm.machines["m1"].container
    saved = docker(engine, "exec", m1, "find", f"{SHARED}/train")
    last = max(map(int, re.findall(r"ckpt-(\d+)\.index", saved)))
    assert last >= 60
    assert sorted(re.findall(rf"ckpt-{last}\.data-(\S+)", saved)) == ["00000-of-00002", "00001-of-00002"]

    # As Marathon's users had it: an image that is there already, by its name.
    assert program.call("config", "rm", "tfdeploy:build", "--stack", program.stack).exit_code == 0
    program.set("image_name", image)
    program.set("train_steps", "40")
    program.up()
    outputs = program.outputs()
    assert outputs["state"] == "succeeded", outputs["status"]
    assert f"final loss {outputs['final_loss']:.4f}" in outputs["logs"]["worker-0"]
    program.destroy()
    assert docker(swarm.manager, "service", "ls", "--quiet") == ""
