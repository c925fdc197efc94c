"""A clean clone of this repository, with a home folder of its own, as a new user has it."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.provision.engine import cache_folder

ROOT = Path(__file__).parents[2]
OURS = ("PULUMI_", "TFDEPLOY_", "PYTEST_", "PYTHONPATH", "VIRTUAL_ENV", "XDG_STATE_HOME", "MAKE", "MFLAGS")
"""Variables of the environment in which the tests run that a new user does not have."""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    exit_code: int
    output: str


def clean_environment(home: Path) -> dict[str, str]:
    """What a login shell of a new user has; what set-up and pip have cached for this user is there already."""
    home.mkdir(exist_ok=True)
    path = [
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not Path(folder).is_relative_to(ROOT) and not Path(folder).is_relative_to(cache_folder())
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**kept, "HOME": str(home), "PATH": os.pathsep.join(path), "XDG_CACHE_HOME": str(cache_folder().parent)}


@dataclass(frozen=True)
class Clone:
    """A clone and its user."""

    folder: Path
    env: Mapping[str, str]

    def call(self, *command: str, **more: str) -> Done:
        """Run a command in the clone to its end."""
        return run(command, self.folder, {**self.env, **more})

    def bash(self, text: str, cwd: Path | None = None) -> Done:
        """Run commands in the activated environment."""
        script = f'source "{self.folder}/tools/activate" && {text}'
        return run(["bash", "-c", script], cwd or self.folder, self.env)

    def remove(self) -> None:
        """Remove it: its environment is large, and pytest keeps the folders of the last runs."""
        shutil.rmtree(self.folder)


def run(command: list[str] | tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> Done:
    """Run a command to its end."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout)


def clone(folder: Path, home: Path) -> Clone:
    """Clone the repository as it is now, with what is not committed yet."""
    git = ["git", "-C", str(ROOT)]
    listed = subprocess.run(
        [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_symlink() or source.exists():  # not one that is about to be removed
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    found = Clone(folder, clean_environment(home))
    author = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    for command in (["init", "--quiet"], ["add", "--all"], [*author, "commit", "--quiet", "--message", "all"]):
        done = found.call("git", *command)
        assert done.exit_code == 0, done.output
    return found
