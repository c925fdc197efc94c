"""`python -m tests.box.mnist`: the main job on EC2 in a box, by the real `pulumi up`, from the first machine to the last."""

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.box.cloud import Box
from tests.engine.daemon import engine
from tests.engine.images import tensorflow_image
from tests.integration.conftest import ROOT, Project

STACK = "box"


class Mnist(Project):
    """The repository's own program, in a copy, with a state of its own; all that Pulumi says is shown."""

    def __init__(self, folder: Path, box: Box, image: str) -> None:
        super().__init__(folder, "mnist")
        self.stack = STACK
        self.env |= box.pulumi_environment
        shutil.copy(ROOT / "Pulumi.yaml", self.program)
        shutil.copytree(ROOT / "programs/mnist", self.program / "programs/mnist")
        key = folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        self.settings = {
            "aws:region": box.environment["AWS_REGION"],
            "tfdeploy:backend": "ec2",
            "tfdeploy:instance_type": "m7i.large",
            "tfdeploy:ssh_key": f"{key}.pub",
            "tfdeploy:ssh_from": '["127.0.0.0/8"]',
            "tfdeploy:efs": "new",
            "tfdeploy:keep_record": "false",
            "tfdeploy:image": image,
            "tfdeploy:wait": "20m",
        }

    def say(self, *arguments: str) -> int:
        """Type a command of Pulumi's, and show what it prints; its exit code."""
        print(f"\n$ pulumi {' '.join(arguments)}", flush=True)
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.program,
            env=self.env,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode

    def train(self) -> bool:
        """Make the machines, train, print what came of it; whether it succeeded."""
        commands = [["stack", "init", self.stack]]
        commands += [["config", "set", key, value] for key, value in self.settings.items()]
        commands += [["up", "--yes"]]
        return all(self.say(*command) == 0 for command in commands)


def main() -> int:
    """Run the job; 0 when it has succeeded and nothing is left."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory(prefix="tfdeploy-mnist-", ignore_cleanup_errors=True) as folder,
        engine() as outer,
        Box(outer) as box,
    ):
        project = Mnist(Path(folder), box, box.push(tensorflow_image(outer)))
        trained = project.train()
        shown = project.say("stack", "output", "status") + project.say("stack", "output", "accuracy")
        destroyed = project.say("destroy", "--yes")
        left = box.left()
    for kind, names in left.items():
        print(f"left behind: {kind}: {', '.join(sorted(names))}", file=sys.stderr)
    succeeded = trained and shown == destroyed == 0 and not left
    print("\nTrained, destroyed, nothing left." if succeeded else "\nThis went wrong.", flush=True)
    return 0 if succeeded else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted: the box and all in it are gone.")
