"""Everything local as a user who is not root, beside another user."""

import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integration.conftest import Project
from tests.removal import kill_all
from tests.users import as_user, own
from tests.verbs import COMMAND
from tests.waiting import until
from tfdeploy.backends.local.supervisor import marked

SLEEPER = "import os, time\nprint(os.getuid(), flush=True)\ntime.sleep(600)"
JOB = 'command=["python", "train.py"], code="code", ps=1, workers=1, wait="0"'


class OfUser(Project):
    """A project of a user who is not root: the folder is theirs alone, and whatever is called runs as they."""

    def __init__(self, folder: Path, uid: int) -> None:
        super().__init__(folder)
        self.uid = uid
        self.home = folder / "home"
        self.home.mkdir()
        self.env.update(HOME=str(self.home), USER=f"user-{uid}", LOGNAME=f"user-{uid}")
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
            self.env.pop(name, None)
        self.write(JOB, SLEEPER)
        self.init()
        folder.chmod(0o700)
        own(folder, uid, uid)

    def begin(self, *command: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a command as the user."""
        return super().begin(*as_user(self.uid, self.uid, *command), env=env)

    def shown(self, cluster: str = "test") -> dict[str, Any]:
        """What `tfdeploy status` says to this user, who has one cluster."""
        (found,) = json.loads(self.run(COMMAND, "show", "--json", "--cluster", cluster).output)
        return dict(found)

    def leftovers(self) -> list[dict[str, str]]:
        """What `tfdeploy ls --leftovers` lists for this user."""
        said = self.run(COMMAND, "ls", "--leftovers", "--json").output
        found: list[dict[str, str]] = json.loads(said)["leftovers"]
        return found

    def processes(self) -> list[psutil.Process]:
        """The processes of the cluster."""
        return sorted(marked(self.places().home), key=lambda process: process.pid)

    def assert_nothing_left(self) -> None:
        """No process or folder of a cluster of this user."""
        assert self.processes() == []
        assert list((self.folder / "state/tfdeploy/clusters").glob("*")) == []

    def clean(self) -> None:
        """End and remove whatever the test left, without Pulumi."""
        kill_all(self.processes())
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def users() -> Iterator[Callable[[int], OfUser]]:
    """Makes projects of users. The folders are not pytest's own, which only root can enter."""
    made: list[OfUser] = []

    def make(uid: int) -> OfUser:
        made.append(OfUser(Path(tempfile.mkdtemp(prefix="tfdeploy-user-")), uid))
        return made[-1]

    yield make
    for project in made:
        project.clean()


def test_a_user_who_is_not_root_creates_and_destroys_a_cluster_beside_another_users(
    users: Callable[[int], OfUser],
) -> None:
    ada, ben = map(users, random.sample(range(20_000, 60_000), 2))  # another clone's tests have others
    for user in (ada, ben):
        user.up()
        user.until_running("ps-0", "worker-0")
        assert [row["hostname"] for row in user.outputs()["tasks"]] == ["ps-0", "worker-0"]
        assert [row["status"] for row in user.shown()["tasks"]] == ["running", "running"]
        processes = user.processes()
        assert len(processes) >= 6
        assert {process.uids().effective for process in processes} == {user.uid}
        until(partial(user.log, "worker-0"), "the first line")
        assert user.log("worker-0") == f"{user.uid}\n"
    assert {user.places().home.stat().st_mode & 0o077 for user in (ada, ben)} == {0}

    assert ada.leftovers() == ben.leftovers() == []
    shutil.rmtree(ada.folder / "backend")
    (ada.folder / "backend").mkdir()
    os.chown(ada.folder / "backend", ada.uid, ada.uid)
    assert [row["home"] for row in ada.leftovers()] == [str(ada.places().home)]
    assert ben.leftovers() == []
    before = ben.processes()
    removed = ada.run(COMMAND, "ls", "--leftovers", "--delete", "--yes", "--stack", "test")
    assert removed.exit_code == 0, removed.output
    ada.assert_nothing_left()
    assert ben.processes() == before
    assert ben.shown()["state"] == "running"
    ben.destroy()
