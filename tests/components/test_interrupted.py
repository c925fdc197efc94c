"""A task that is told to stop, but not by the controller (a reboot, a spot machine taken back): interrupted, not ended."""

import signal
import sys

import pytest

from tests.components.conftest import Standing
from tests.waiting import until
from tfdeploy.agent.control.restart_policy import EXTERNAL_SIGNAL
from tfdeploy.agent.model.events import TASK_INTERRUPTED

SAYS_IT_IS_DONE = """
import signal, sys
from steps import begin, hostname, number, wait_for

def end(*_):
    print("told to stop", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, end)
print("start", number, flush=True)
begin()
wait_for("gate", hostname)
"""


def exits(cluster: Standing, hostname: str) -> str:
    """What supervisord wrote of the ends of a launcher."""
    log = (cluster.places.home / "supervisord.log").read_text()
    return "\n".join(line for line in log.splitlines() if f"exited: {hostname}" in line)


SEES = """
import sys
from pathlib import Path

sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0])
from agent.launch import docker_env
from agent.main import main

docker_env.NOTICE = Path({notice!r})
sys.exit(main())
"""
"""In place of the agent: it finds what a machine says in a file of the test's."""


def test_an_interrupted_task_is_no_success_whatever_it_says_and_a_machine_that_goes_says_why(
    cluster: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice, seeing = cluster.folder / "notice", cluster.folder / "seeing.py"
    cluster.folder.mkdir(exist_ok=True)
    seeing.write_text(SEES.format(notice=str(notice)))
    monkeypatch.setattr("tfdeploy.backends.local.task_runner._PYTHON", (sys.executable, "-I", "-S", str(seeing)))
    cluster.run(SAYS_IT_IS_DONE, workers=1)
    cluster.signal("worker-0", signal.SIGTERM)
    cluster.until_running("worker-0", times=2)
    assert "exit status 143; not expected" in exits(cluster, "worker-0")
    assert EXTERNAL_SIGNAL in [event.reason for event in cluster.events() if event.kind == TASK_INTERRUPTED]
    notice.write_text("spot instance is taken away\n")
    until(lambda: cluster.recorded("worker-0") == "interrupted", "the notice is heard")
    until(lambda: "spot instance is taken away" in [event.reason for event in cluster.events()], "the event")
    assert cluster.output("worker-0") == b"start 1\ntold to stop\nstart 2\ntold to stop\n"
    until(lambda: exits(cluster, "worker-0").count("exit status 143") > 2, "another launcher came and went")
    assert cluster.recorded("worker-0") == "interrupted"
    notice.unlink()
    cluster.until_running("worker-0", times=3)
