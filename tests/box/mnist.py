"""The main job on EC2 in a box."""

import json
import subprocess
from pathlib import Path

from tests.box.aws_project import EC2_MODULES
from tests.box.cloud import Box
from tests.main_job import MainJob


class Mnist(MainJob):
    """The main job on one machine."""

    modules = EC2_MODULES

    def __init__(self, folder: Path, box: Box, image: str) -> None:
        key = folder / "key"
        machines = {
            "instance_type": "m7i.large",
            "machine_count": 1,
            "ssh_public_key": f"{key}.pub",
            "ssh_cidrs": ["127.0.0.0/8"],
            "efs": "new",
            "retain_record": False,
        }
        settings = {
            "aws:region": box.environment["AWS_REGION"],
            "tfdeploy:backend": "ec2",
            "tfdeploy:ec2": json.dumps(machines),
            "tfdeploy:container": json.dumps({"image": image, "retain_volumes": False}),
            "tfdeploy:wait": "20m",
        }
        super().__init__(folder, settings)
        self.env |= box.pulumi_environment
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
