"""The main job on the tests' Kubernetes; `python -m tests.kube.mnist` runs its test with all that Pulumi prints."""

import json
import sys
from pathlib import Path

import pytest

from tests.engine.images import PYTHON, SITE, tensorflow_packages
from tests.kube.cluster import Cluster
from tests.kube.plane import STORAGE_CLASS
from tests.main_job import MainJob


class Mnist(MainJob):
    """The main job, whose pods find TensorFlow in a folder of their nodes."""

    def __init__(self, folder: Path, kube: Cluster) -> None:
        volumes = [f"{tensorflow_packages()}:{SITE}:ro"]
        settings = {
            "tfdeploy:backend": "kubernetes",
            "tfdeploy:kubernetes": json.dumps({"storage_class": STORAGE_CLASS}),
            "tfdeploy:container": json.dumps({"image": PYTHON, "volumes": volumes, "retain_volumes": False}),
            "tfdeploy:wait": "20m",
        }
        super().__init__(folder, settings)
        self.env["KUBECONFIG"] = str(kube.kubeconfig)


def main() -> int:
    """Run the test of the main job on Kubernetes; its exit code."""
    return int(pytest.main(["-q", "-s", "-m", "", str(Path(__file__).with_name("test_mnist.py"))]))


if __name__ == "__main__":
    sys.exit(main())
