"""The main job as the README has it, on EC2 in a box, with real TensorFlow: `make box-mnist` runs this file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.box.cloud import Box
from tests.box.mnist import Mnist
from tests.mnist_model import stored_model

pytestmark = pytest.mark.full


@pytest.fixture
def mnist(tmp_path: Path, box: Box, tensorflow_image: str) -> Iterator[Mnist]:
    found = Mnist(tmp_path / "mnist", box, box.push(tensorflow_image))
    yield found
    for one in box.instances():
        if one.name.startswith("mnist-") and one.state != "terminated":
            box.client("ec2").terminate_instances(InstanceIds=[one.id])


def test_the_main_job_trains_on_ec2_and_leaves_nothing(mnist: Mnist, box: Box) -> None:
    before = box.left()
    outputs = mnist.train()
    assert outputs["status"] == {"ps-0": "stopped (run finished)", "worker-0": "succeeded", "worker-1": "succeeded"}
    assert outputs["accuracy"] > 0.9
    mnist.say("destroy", "--yes")
    assert box.left() == before
    trained = stored_model(mnist.folder / "state")
    assert trained.accuracy == pytest.approx(outputs["accuracy"], abs=0.0001)
    assert trained.step >= 500
    print("\nTrained, destroyed, nothing left.", flush=True)
