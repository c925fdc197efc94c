"""The main job as the README has it, on the tests' Kubernetes, with real TensorFlow: `make kube-mnist` runs this file."""

from pathlib import Path

import pytest

from tests.kube.cluster import Cluster
from tests.kube.mnist import Mnist
from tests.mnist_model import stored_model

pytestmark = pytest.mark.full


@pytest.fixture
def mnist(tmp_path: Path, kube: Cluster) -> Mnist:
    return Mnist(tmp_path / "mnist", kube)


def test_the_main_job_trains_on_two_nodes_and_leaves_nothing(mnist: Mnist, kube: Cluster) -> None:
    before = kube.left()
    outputs = mnist.train()
    assert outputs["status"] == {"ps-0": "stopped (run finished)", "worker-0": "succeeded", "worker-1": "succeeded"}
    assert outputs["accuracy"] > 0.9
    mnist.say("destroy", "--yes")
    assert kube.left() == before
    trained = stored_model(mnist.folder / "state")
    assert trained.accuracy == pytest.approx(outputs["accuracy"], abs=0.0001)
    assert trained.step >= 500
    print("\nTrained, destroyed, nothing left.", flush=True)
