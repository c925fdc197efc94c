"""Whose cluster it is: the id in the stack's state decides, not the words."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.conftest import Project
from tests.removal import remove_local_cluster
from tests.verbs import Verbs
from tests.waiting import until
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.local.supervisor import Supervisor, marked

SLEEPER = "import time\nprint('trains', flush=True)\ntime.sleep(600)"
JOB = 'command=["python", "train.py"], code="code", workers=1, wait="0"'

OTHER_MACHINE = """\
import sys
if "tfdeploy" not in sys.modules:
    try:
        from tfdeploy.backends.local import paths, planner
    except ImportError:
        pass
    else:
        paths.machine_id = planner.machine_id = lambda: "0123456789abcdef" * 2
"""


class Login(Project):
    """A project whose stacks another login stores; state folder and user are the same."""

    def __init__(self, folder: Path, login: str, name: str = "project", stack: str = "test") -> None:
        own = folder / login
        super().__init__(own, name)
        self.stack = stack
        self.env["XDG_STATE_HOME"] = str(folder / "state")
        self.verbs = Verbs(self.program, self.env)
        self.write(JOB, SLEEPER)
        self.init()

    def ref(self, name: str = "test") -> ClusterRef:
        """The cluster in the state of the stack."""
        export = json.loads(self.call("stack", "export", "--stack", self.stack).output)
        cleanups = [item for item in export["deployment"]["resources"] if item["type"].endswith("tfdeploy:Cleanup")]
        (found,) = [item["inputs"]["cluster"] for item in cleanups]
        cluster: ClusterRef = found
        return cluster

    def trace(self) -> tuple[set[int], bytes]:
        """Its processes and its events: neither changes as long as nobody touches the cluster."""
        places = self.places()
        run = Record(places.record).current()
        assert run is not None
        events = (Record(places.record).run_folder(run.spec.id) / "events.jsonl").read_bytes()
        launchers = {int(program["pid"]) for program in Supervisor(places).programs().values()}
        children = {self.child("worker-0").pid}
        return launchers | children, events

    def until_running(self, *hostnames: str) -> None:
        """As of every project, and until the last event, which is written after the state."""
        super().until_running(*hostnames)
        until(lambda: b'"task_started"' in self.trace()[1], "the event of the start", seen=self.trace)

    def leftovers(self) -> list[str]:
        """The ids of the clusters of this state folder that are left over, or may be."""
        rows = json.loads(self.verbs.call("ls", "--leftovers", "--json")[1])["leftovers"]
        return [row["id"] for row in rows if row["home"].startswith(self.env["XDG_STATE_HOME"])]

    def start_training(self) -> tuple[set[int], bytes]:
        self.up()
        self.until_running("worker-0")
        return self.trace()


@pytest.fixture
def logins(tmp_path: Path) -> Iterator[Callable[..., Login]]:
    """Makes projects of several logins with one state folder."""
    made: list[Login] = []

    def make(login: str, **words: str) -> Login:
        made.append(Login(tmp_path, login, **words))
        return made[-1]

    yield make
    for home in (tmp_path / "state/tfdeploy/clusters").glob("*/"):
        remove_local_cluster(home)


def test_a_lost_state_touches_nothing_and_says_what_exists_and_the_two_ways_on(logins: Callable[..., Login]) -> None:
    ada = logins("ada")
    before = ada.start_training()
    lost = ada.ref()
    places = ada.places()
    shutil.rmtree(ada.folder / "backend")
    (ada.folder / "backend").mkdir()
    ada.init()
    said = ada.call("preview", "--stack", ada.stack).output
    words = " ".join(said.split())
    assert f"exists: {lost['id']}, created by {lost['owner']} since 20" in words
    assert f"set `adopt` to {lost['id']}" in words
    assert f"tfdeploy ls --leftovers --delete --cluster {lost['id']}" in words

    ada.write(f'{JOB}, adopt="{lost["id"]}"', SLEEPER)
    done = ada.up()
    assert f"exists: {lost['id']}" not in done.output
    assert ada.ref() == lost
    assert ada.trace()[0] == before[0], "no process was restarted"
    assert set(ada.up().steps()) == {"unchanged"}

    shutil.rmtree(ada.folder / "backend")
    (ada.folder / "backend").mkdir()
    ada.write(JOB, SLEEPER)
    ada.init()
    code, _, message = ada.verbs.call("ls", "--leftovers", "--delete", "--cluster", lost["id"], "--yes")
    assert code == 0, message
    assert (places.home.exists(), marked(places.home)) == (False, [])
    assert lost["id"] not in ada.call("preview", "--stack", ada.stack).output


def test_the_same_state_on_another_computer_is_refused_with_the_name_of_the_first(logins: Callable[..., Login]) -> None:
    ada = logins("ada")
    before = ada.start_training()
    elsewhere = ada.customize_python(OTHER_MACHINE)
    for command in (("preview",), ("up", "--yes", "--skip-preview")):
        refused = ada.call(*command, "--stack", ada.stack, env=elsewhere)
        assert refused.exit_code != 0
        words = " ".join(refused.output.split())
        assert f"the cluster {ada.ref()['id']} is on {os.uname().nodename.partition('.')[0]}" in words
    assert ada.trace() == before

    destroyed = ada.call("destroy", "--yes", "--skip-preview", "--stack", ada.stack, env=elsewhere)
    assert destroyed.exit_code == 0, destroyed.output
    assert {pid for pid in before[0] if psutil.pid_exists(pid)} == before[0], "nothing was changed on this computer"


@pytest.mark.full
def test_a_renamed_stack_keeps_its_cluster(logins: Callable[..., Login]) -> None:
    ada = logins("ada")
    before = ada.start_training()
    cluster = ada.ref()
    assert ada.call("stack", "rename", "renamed", "--stack", ada.stack).exit_code == 0
    ada.stack = "renamed"
    assert ada.leftovers() == []
    ada.verbs.call("ls", "--leftovers", "--delete", "--yes")
    assert ada.trace() == before
    ada.up()
    assert ada.trace()[0] == before[0], "no process was restarted"
    assert ada.ref() == {**cluster, "stack": "renamed"}
    (shown,) = json.loads(ada.verbs.call("show", "--json", "--stack", "renamed")[1])
    assert (shown["id"], shown["stack"], shown["state"]) == (cluster["id"], "renamed", "running")
    assert ada.call("destroy", "--yes", "--skip-preview", "--stack", ada.stack).exit_code == 0
    assert marked(Path(cluster["home"])) == []
