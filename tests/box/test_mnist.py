"""The main job as the README has it, on EC2 in a box, with real TensorFlow: `make box-mnist` runs this file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.box.cloud import Box
from tests.box.mnist import Mnist

pytestmark = pytest.mark.full


@pytest.fixture
def mnist(tmp_path: Path, box: Box, tensorflow_image: str) -> Iterator[Mnist]:
    found = Mnist(tmp_path / "mnist", box, box.push(tensorflow_image))
    yield found
    for one in box.instances():
        if one.name.startswith("mnist-") and one.state != "terminated":
            box.client("ec2").terminate_instances(InstanceIds=[one.id])


def test_the_main_job_trains_on_ec2_and_leaves_nothing(mnist: Mnist, box: Box) -> None:
    mnist.train_and_destroy(box.left)
