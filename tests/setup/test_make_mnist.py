"""`make mnist`, which README names, in a clean clone, by a user who has nothing but what set-up keeps for all clones."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks
from tests.setup.clones import Clone, clone
from tests.setup.plugin_server import PluginServer, plugin_server

pytestmark = pytest.mark.full

SECONDS = 60.0
"""For a second `make mnist`; it takes 3 on an idle machine."""


@pytest.fixture
def server() -> Iterator[PluginServer]:
    """A server that has no plugin."""
    with plugin_server() as found:
        yield found


@pytest.fixture
def user(tmp_path: Path, server: PluginServer) -> Iterator[Clone]:
    """A clean clone; at the end its cluster and its environment are removed."""
    made = clone(tmp_path / "clone", tmp_path / "home")
    found = Clone(made.folder, {**made.env, **server.env})
    try:
        yield found
    finally:
        if (found.folder / ".venv").exists():
            found.bash("pulumi destroy --yes --stack dev")
        found.remove()


def tasks(user: Clone) -> list[list[str]]:
    """The tasks, with the processes, and when they were started."""
    shown = user.bash("tfdeploy status --json", user.folder / "programs/mnist")
    assert shown.exit_code == 0, shown.output
    return [
        [row[key] for key in ("hostname", "status", "container", "created")]
        for row in json.loads(shown.output)[0]["tasks"]
    ]


def test_make_mnist_trains_once_and_asks_for_no_plugin(user: Clone, server: PluginServer) -> None:
    first = user.call("make", "mnist", UV_COMPILE_BYTECODE="0")
    assert first.exit_code == 0, first.output
    accuracy = re.search(r"^accuracy: (0\.\d+)$", first.output, re.MULTILINE)
    assert accuracy is not None, first.output
    assert float(accuracy[1]) > 0.9
    assert "Python packages for local …" in first.output
    assert re.findall(r"^ +\S+ +python train\.py +(\w+-\d) ", first.output, re.MULTILINE) == [
        "ps-0",
        "worker-0",
        "worker-1",
    ]
    trained = tasks(user)
    assert len(trained) == 3
    assert user.bash("python -c 'import docker'").exit_code != 0

    begun = time.monotonic()
    second = user.call("make", "mnist")
    took = time.monotonic() - begun
    assert second.exit_code == 0, second.output
    assert "8 unchanged" in second.output
    assert "Python packages" not in second.output
    assert tasks(user) == trained
    assert took < SECONDS

    assert server.asked == []
    assert user.call("git", "status", "--porcelain").output == ""
    assert user.bash("pulumi stack output accuracy", user.folder / "programs/mnist").output.strip() == accuracy[1]

    stranger = user.folder.parent / "stranger"
    stranger.mkdir()
    other = user.call("make", "mnist", HOME=str(stranger))
    assert other.exit_code != 0
    assert "Remove that file to start again." in other.output

    _later_set_ups(user)
    _what_readme_shows(user)
    assert user.call("make", "clean").exit_code == 0
    assert not (user.folder / ".venv").exists()
    left = user.call("git", "status", "--porcelain", "--ignored").output
    assert left.splitlines() == ["!! Pulumi.dev.yaml"]


def _what_readme_shows(user: Clone) -> None:
    """The commands of README's quick start that follow the first `pulumi up` work here too; the last one is `pulumi destroy`."""
    (typed,) = [block for block in blocks(ROOT / "README.md", "console") if block.heading == "Quick start"]
    follow = typed.commands[typed.commands.index("pulumi up") :]
    assert follow[-1] == "pulumi destroy"
    for command in follow:
        # Pulumi's own variable for `--yes`, so that the commands are those of README.
        done = user.bash(f"export PULUMI_SKIP_CONFIRMATIONS=true; {command}")
        assert done.exit_code == 0, f"{command}:\n{done.output}"
    (user.folder / "mnist.html").unlink()


def _later_set_ups(user: Clone) -> None:
    """What another set-up adds stays after a smaller one, and adds no word to an update of a local cluster."""
    added = user.call("make", "setup-docker")
    assert added.exit_code == 0, added.output
    assert "Python packages for docker, local …" in added.output
    again = user.call("make", "setup")
    assert again.exit_code == 0, again.output
    assert "Python packages" not in again.output
    assert user.bash("python -c 'import docker'").exit_code == 0
    update = user.bash("pulumi up --yes --non-interactive")
    assert update.exit_code == 0, update.output
    assert "plugin" not in update.output
    assert "pulumi-resource" not in update.output
