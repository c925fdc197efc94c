"""A Swarm of three machines: tasks on different ones, a machine that dies, a manager reached by ssh, another Swarm."""

import re
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.calling import tfdeploy
from tests.docker.project import DockerProject
from tests.engine import nested as machines
from tests.engine.cli import docker
from tests.engine.nested import Nested
from tests.waiting import until
from tfdeploy.agent.model.events import TASK_STARTED

pytestmark = pytest.mark.full

SPREAD = (
    'command=["python", "train.py"], code="code", ps=1, workers=2, wait="0", container={"placement": ["hostname:UNIQUE"]}, '
    'jobs={"ps": {"container": {"placement": ["zone:IS:a"]}}, '
    '"worker": {"container": {"placement": ["zone:IS:b", "hostname:UNIQUE"]}}}'
)
TALKS = """\
import os, pathlib, socket, time
train = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], os.environ["TFDEPLOY_HOSTNAME"])
print("tcp_retries2", pathlib.Path("/proc/sys/net/ipv4/tcp_retries2").read_text().strip())
print("began again" if train.exists() else "began", flush=True)
train.write_text("a checkpoint")
host, port = os.environ["TFDEPLOY_PS_HOSTS"].split(":")
if os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    server = socket.create_server(("", int(port)))
    while True:
        server.accept()[0].sendall(b"the ps")
while True:
    try:
        with socket.create_connection((host, int(port)), 5) as ps:
            print("heard", ps.recv(100).decode(), flush=True)
            break
    except OSError:
        time.sleep(0.2)
number = 0
while True:
    print("tick", number, time.time(), flush=True)
    number += 1
    time.sleep(0.2)
"""

LONGEST_GAP = 10.0
"""Seconds between two ticks of a program on a busy computer. One that is started again has a gap of more than the time of a cut."""

Make = Callable[[str], DockerProject]


def logs(project: DockerProject, hostname: str) -> list[str]:
    """The lines of a task, as a look has them now."""
    return [line.text for line in project.look(5_000).view.logs.get(hostname, [])]


def places(project: DockerProject) -> dict[str, str]:
    """Hostname to machine."""
    return {row["hostname"]: row["machine"] for row in project.outputs()["tasks"]}


def ticks(project: DockerProject, hostname: str) -> list[float]:
    """The times of the ticks that a task's program has printed since it began, as far as the controller has them. The last line may be
    unfinished."""
    found = [match for line in logs(project, hostname) if (match := re.fullmatch(r"tick (\d+) ([\d.]+)", line))]
    assert [int(match[1]) for match in found] == list(range(len(found))), "the program begins once"
    return [float(match[2]) for match in found]


def outlive_a_manager_that_is_cut_off(nested: Nested, project: DockerProject) -> None:
    """The Swarm calls both workers' machines down, and has them back: their programs go on, and nothing is started again."""
    with nested.cut("m0"):
        for name in ("m1", "m2"):
            nested.wait(name, "down")
        until(lambda: project.sees()["worker-1"].startswith("unreachable since"), "worker-1 is unreachable")
        said = project.call("preview", "--stack", project.stack).output
        assert "worker-1 waits for m2, which does not respond: its program may still run there" in said
    back = time.time()
    for hostname, name in (("worker-0", "m1"), ("worker-1", "m2")):
        nested.wait(name)
        until(lambda name=hostname: ticks(project, name)[-1] > back + 15, f"{hostname} goes on")  # type: ignore[misc]
        times = ticks(project, hostname)
        assert max(after - before for before, after in pairwise(times)) < LONGEST_GAP, (
            "it ran while the manager was cut off"
        )
    assert {task.attempt for task in project.job().tasks.values()} == {1}


def move_off_a_machine_that_the_user_calls_lost(nested: Nested, project: DockerProject) -> None:
    """A task waits for its machine until somebody confirms that it is gone."""
    project.write(f"{SPREAD.partition('jobs=')[0]} jobs={{}}, container={{'volumes': []}}", TALKS)
    project.up()
    nested.kill("m2")
    nested.wait("m2", "down")
    try:
        project.up()
        status = " ".join(tfdeploy(project, "status").out.split())
        assert (
            "m2 is unreachable (heartbeat failure), and worker-1 waits for it: its program may still run there."
            in status
        )
        assert "`tfdeploy restart --lost m2` moves its tasks" in status
        assert places(project)["worker-1"] == "m2"
        said = tfdeploy(project, "restart", "--lost", "m2", "--yes").err
        assert "You promise that m2 is off" in " ".join(said.split())
        project.until_running("worker-1")
        project.up()
        assert places(project)["worker-1"] == "m1"
    finally:
        nested.readmit("m2")


def test_tasks_stand_apart_and_outlive_a_machine(nested: Nested, project_on: Callable[[str], DockerProject]) -> None:
    project = project_on(nested.manager)
    project.env["COUNTER"] = "/tmp"
    project.write(SPREAD + ', container={"volumes": []}', TALKS)
    project.init()
    said = project.call("preview", "--stack", project.stack).output
    assert "m0: ps-0" in said
    assert "m1: worker-0" in said
    assert "m2: worker-1" in said
    project.up()
    project.until_running("ps-0", "worker-0", "worker-1")
    for hostname in ("worker-0", "worker-1"):
        until(lambda name=hostname: "heard the ps" in logs(project, name), f"{hostname} heard the ps")  # type: ignore[misc]
    assert places(project) == {"ps-0": "m0", "worker-0": "m1", "worker-1": "m2"}
    assert "tcp_retries2 8" in logs(project, "worker-0")

    outlive_a_manager_that_is_cut_off(nested, project)

    nested.kill("m1")
    nested.wait("m1", "down")
    try:
        until(lambda: project.sees()["worker-0"].startswith("unreachable since"), "worker-0 is unreachable")
        project.up()
        seen = project.outputs()
        assert {row["machine"]: row["status"] for row in seen["machines"]}["m1"].startswith("unreachable")
        assert {row["hostname"]: row["status"] for row in seen["tasks"]}["worker-1"] == "running"
        assert seen["logs"]["worker-1"][-1].startswith("tick"), "one machine's death costs only its own lines"
    finally:
        nested.start("m1")
    project.until_running("worker-0")
    until(lambda: "began again" in logs(project, "worker-0"), "worker-0 found its checkpoint")

    moved = SPREAD.replace('"zone:IS:b"', '"hostname:UNLIKE:m1"').replace('"zone:IS:a"', '"hostname:LIKE:m[01]"')
    project.write(moved + ', container={"volumes": []}', TALKS)
    project.up()
    project.until_running("ps-0", "worker-0", "worker-1")
    project.up()
    after = places(project)
    assert after["worker-1"] == "m2", "what stands well stays"
    assert after["worker-0"] == "m0"

    move_off_a_machine_that_the_user_calls_lost(nested, project)
    destroyed = project.destroy()
    assert "could not be removed" not in destroyed.output
    for machine in nested.machines.values():
        assert docker(machine.engine, "volume", "ls", "--quiet") == "", machine.hostname


def test_a_manager_is_reached_by_ssh_and_another_swarm_is_healed_and_finished_stays_finished(
    engine: str, python_image: str, project_on: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    with machines.nested(engine, ["m0"], authorized_key=key.with_suffix(".pub").read_text().strip()) as found:
        found.load(python_image)
        monkeypatch.setenv("PATH", f"{_ssh(tmp_path, key)}:{__import__('os').environ['PATH']}")
        project = project_on(f"ssh://root@{found.machines['m0'].address}")
        project.env["COUNTER"] = "/tmp"
        project.env["PATH"] = f"{tmp_path / 'bin'}:{project.env['PATH']}"
        project.write(
            'command=["python", "train.py"], code="code", ps=1, workers=1, wait="0", container={"volumes": []}', TALKS
        )
        project.init()
        project.up()
        project.until_running("ps-0", "worker-0")
        near = found.manager
        assert docker(near, "service", "ls", "--quiet").count("\n") == 2

        docker(near, "swarm", "leave", "--force")
        docker(near, "swarm", "init", "--advertise-addr", found.machines["m0"].address)
        assert docker(near, "service", "ls", "--quiet") == ""
        project.up("--refresh")
        project.until_running("ps-0", "worker-0")
        project.up()
        assert set(project.statuses().values()) == {"running"}

        project.write(
            'command=["python", "train.py"], code="code", ps=1, workers=1, container={"volumes": []}',
            "print('trained')",
        )
        project.up()
        assert project.statuses()["worker-0"] == "succeeded"
        found.kill("m0")
        found.start("m0")
        until(lambda: project.container("controller"), "the controller is back")
        project.look()
        for call in (project.up(), project.up("--refresh")):
            assert list(call.steps()) == ["unchanged"], call.output
        assert project.statuses()["worker-0"] == "succeeded"
        run = project.record().current()
        assert run is not None
        happened = [(event.kind, event.task, event.attempt) for event in project.record().events(run.spec.id)]
        assert happened.count((TASK_STARTED, "worker-0", 1)) == 1, "a restart of the engine trains nothing twice"
        done = project.call("destroy", "--yes", "--skip-preview", "--stack", project.stack)
        assert done.exit_code == 0, done.output
        assert docker(near, "service", "ls", "--quiet") == ""
        assert docker(near, "volume", "ls", "--quiet") == ""


def _ssh(folder: Path, key: Path) -> Path:
    """An `ssh` on PATH that has the key and no known hosts, as a user's configuration would say it."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    real = subprocess.run(["which", "ssh"], capture_output=True, text=True, check=True).stdout.strip()
    options = f"-i {key} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    (bin_folder / "ssh").write_text(f'#!/bin/sh\nexec {real} {options} "$@"\n')
    (bin_folder / "ssh").chmod(0o755)
    return bin_folder
