"""A program of the repository's in a copy, with nothing in it edited: set by the stack's configuration alone."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.integration.conftest import ROOT, Project


class Program(Project):
    """`programs/NAME`, of which the cluster is called `cluster`."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.program.rmdir()
        # Links are followed, as `pulumi new` does.
        shutil.copytree(ROOT / "programs" / name, self.program, ignore=shutil.ignore_patterns("__pycache__"))
        self.init()

    def configure(self, **settings: Any) -> None:
        """`pulumi config set tfdeploy:NAME VALUE`, for all in one call; what is no text goes as JSON."""
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
        given = [f"--plaintext=tfdeploy:{name}={text}" for name, text in texts.items()]
        done = self.call("config", "set-all", "--stack", self.stack, *given)
        assert done.exit_code == 0, done.output

    def registered(self) -> list[dict[str, Any]]:
        """What is known of each cluster that this program has made."""
        return [json.loads(path.read_text()) for path in (self.folder / "state/tfdeploy/registry").glob("*.json")]
