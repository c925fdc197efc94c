"""The program of people who come from Marathon on two machines that share storage, in an image that holds it."""

import re
from collections.abc import Callable, Iterator

import pytest

from tests.engine import nested as machines
from tests.engine.cli import docker
from tests.engine.images import NAME
from tests.engine.nested import SHARED, Nested
from tests.integration.conftest import ROOT
from tests.programs.program import Program

IMAGE = f"{NAME}/marathon"
DIGITS = ROOT / "programs/mnist/train/digits.npz"


@pytest.fixture
def swarm(engine: str, tensorflow_image: str) -> Iterator[Nested]:
    """Two machines that have the program's image, and share a folder with the data."""
    base = f"BASE={tensorflow_image}"
    docker(engine, "build", "--quiet", "--tag", IMAGE, "--build-arg", base, ROOT / "programs/marathon_mnist/train")
    try:
        with machines.nested(engine, ["m0", "m1"]) as found:
            found.load(IMAGE)
            m0 = found.machines["m0"].container
            docker(engine, "exec", m0, "mkdir", "-p", f"{SHARED}/data", f"{SHARED}/train")
            docker(engine, "cp", DIGITS, f"{m0}:{SHARED}/data/mnist.npz")
            yield found
    finally:
        docker(engine, "image", "rm", "--no-prune", IMAGE)


@pytest.mark.full
def test_two_ps_on_two_machines_write_sharded_checkpoints(
    swarm: Nested, programs: Callable[[str], Program], engine: str
) -> None:
    program = programs("marathon_mnist")
    settings = {"image_name": IMAGE, "data_dir": f"{SHARED}/data", "train_dir": f"{SHARED}/train", "train_steps": "60"}
    for name, value in settings.items():
        program.set(name, value)
    apart = {"container": {"placement": ["hostname:UNIQUE"]}}
    program.configure(backend="docker", docker={"host": swarm.manager}, jobs={"ps": apart, "worker": apart}, wait="8m")
    program.up()
    outputs = program.outputs()
    assert outputs["state"] == "succeeded", outputs["status"]
    assert 0 < outputs["final_loss"] < 1.5
    assert f"final loss {outputs['final_loss']:.4f}" in outputs["logs"]["worker-0"]
    places = {row["hostname"]: row["machine"] for row in outputs["tasks"]}
    assert {places["ps-0"], places["ps-1"]} == {places["worker-0"], places["worker-1"]} == {"m0", "m1"}

    saved = docker(engine, "exec", swarm.machines["m1"].container, "find", f"{SHARED}/train")
    last = max(map(int, re.findall(r"ckpt-(\d+)\.index", saved)))
    assert last >= 60
    assert sorted(re.findall(rf"ckpt-{last}\.data-(\S+)", saved)) == ["00000-of-00002", "00001-of-00002"]
    program.destroy()
    assert docker(swarm.manager, "service", "ls", "--quiet") == ""
