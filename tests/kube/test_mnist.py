"""The main job as the README has it, on the tests' Kubernetes, with real TensorFlow: `make kube-mnist` runs this file."""

from pathlib import Path

import pytest

from tests.kube.cluster import Cluster
from tests.kube.mnist import Mnist

pytestmark = pytest.mark.full


@pytest.fixture
def mnist(tmp_path: Path, kube: Cluster) -> Mnist:
    return Mnist(tmp_path / "mnist", kube)


def test_the_main_job_trains_on_two_nodes_and_leaves_nothing(mnist: Mnist, kube: Cluster) -> None:
    mnist.train_and_destroy(kube.left)
