"""The main job on EC2 in a box, by the real `pulumi up`; `python -m tests.box.mnist` runs its test with all that Pulumi prints."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.box.aws_project import EC2_MODULES
from tests.box.cloud import Box
from tests.integration.conftest import ROOT, Project


class Mnist(Project):
    """The repository's own program, in a copy, with a state of its own; all that Pulumi says is shown."""

    modules = EC2_MODULES

    def __init__(self, folder: Path, box: Box, image: str) -> None:
        super().__init__(folder, "mnist")
        self.env |= box.pulumi_environment
        shutil.copy(ROOT / "Pulumi.yaml", self.program)
        shutil.copytree(ROOT / "programs/mnist", self.program / "programs/mnist")
        key = folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        self.settings = {
            "aws:region": box.environment["AWS_REGION"],
            "tfdeploy:backend": "ec2",
            "tfdeploy:ec2": json.dumps(
                {
                    "instance_type": "m7i.large",
                    "machine_count": 1,
                    "ssh_public_key": f"{key}.pub",
                    "ssh_cidrs": ["127.0.0.0/8"],
                    "efs": "new",
                    "retain_record": False,
                }
            ),
            "tfdeploy:container": json.dumps({"image": image, "retain_volumes": False}),
            "tfdeploy:wait": "20m",
        }

    def say(self, *arguments: str) -> None:
        """Type a command of Pulumi's, and show what it prints; fails the test when it fails."""
        print(f"\n$ pulumi {' '.join(arguments)}", flush=True)
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.program,
            env=self.env,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"pulumi {arguments[0]} ended with exit code {done.returncode}"

    def train(self) -> dict[str, Any]:
        """Create the machines and train; the stack's outputs."""
        self.say("stack", "init", self.stack)
        self.say("config", "set-all", *(f"--plaintext={key}={value}" for key, value in self.settings.items()))
        self.say("up", "--yes")
        self.say("stack", "output", "status")
        self.say("stack", "output", "accuracy")
        return self.outputs()


def main() -> int:
    """Run the test of the main job in a box; its exit code."""
    return int(pytest.main(["-q", "-s", "-m", "", str(Path(__file__).with_name("test_mnist.py"))]))


if __name__ == "__main__":
    sys.exit(main())
