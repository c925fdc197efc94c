"""The main job on the tests' Kubernetes."""

import json
from pathlib import Path

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
