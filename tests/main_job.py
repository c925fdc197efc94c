"""The main job, as the README has it, on a platform that the tests run: the real `pulumi up`, with all that Pulumi prints."""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import ROOT, Project
from tests.mnist_model import stored_model


class MainJob(Project):
    """The repository's own program, in a copy, with a state of its own."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        super().__init__(folder, "mnist")
        shutil.copy(ROOT / "Pulumi.yaml", self.program)
        shutil.copytree(ROOT / "programs/mnist", self.program / "programs/mnist")
        self.settings = settings

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
        """Create what the job needs, and train; the stack's outputs."""
        self.say("stack", "init", self.stack)
        self.say("config", "set-all", *(f"--plaintext={key}={value}" for key, value in self.settings.items()))
        self.say("up", "--yes")
        self.say("stack", "output", "status")
        self.say("stack", "output", "accuracy")
        return self.outputs()

    def train_and_destroy(self, left: Callable[[], object]) -> None:
        """Train, and destroy. The model is good and stored here, and the platform is as before: `left` returns what it has."""
        before = left()
        outputs = self.train()
        stopped, succeeded = "stopped (run finished)", "succeeded"
        assert outputs["status"] == {"ps-0": stopped, "worker-0": succeeded, "worker-1": succeeded}
        assert outputs["accuracy"] > 0.9
        self.say("destroy", "--yes")
        assert left() == before
        trained = stored_model(self.folder / "state")
        assert trained.accuracy == pytest.approx(outputs["accuracy"], abs=0.0001)
        assert trained.step >= 500
        print("\nTrained, destroyed, nothing left.", flush=True)
