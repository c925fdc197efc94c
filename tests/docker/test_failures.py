"""What breaks is told by its right word and reason, and what can go on goes on."""

import re

from tests.docker.project import GATED, DockerProject
from tests.waiting import until
from tfdeploy.agent.model.events import LAUNCHER_LOST, RECORD_RESTORED, TASK_INTERRUPTED, TASK_RESTARTING
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.backends.docker.backend import BACKEND
from tfdeploy.backends.docker.labels import RECORD_VOLUME, volume_name

JOB = 'command=["python", "train.py"], code="code", env={"COUNTER": __import__("os").environ["COUNTER"]}'
NOW = f'{JOB}, wait="0"'
KILL = """\
import os, pathlib
for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    if line.read_bytes().startswith(b"python\\0train.py\\0"):
        os.kill(int(line.parent.name), 9)
"""
EATER = """\
import os, subprocess, sys
eat = "eaten = [bytearray(8 << 20) for _ in range(100)]"
print("eater:", subprocess.run([sys.executable, "-c", eat], start_new_session=True).returncode, flush=True)
os.kill(os.getpid(), 9)
"""
"""The launcher, which watches its child's process group, does not see the one that eats: the kernel does."""


def test_a_killed_program_a_killed_and_a_stopped_container_come_back(project: DockerProject) -> None:
    project.write(f"{NOW}, ps=1, workers=3", GATED)
    project.up()
    project.until_running("ps-0", "worker-0", "worker-1", "worker-2")
    kept, killed, stopped = map(project.container, ("worker-0", "worker-1", "worker-2"))

    project.inside("worker-0", "python", "-c", KILL)
    project.docker("kill", killed)
    project.docker("stop", stopped)
    project.until_event(TASK_RESTARTING, "worker-0")
    project.until_event(LAUNCHER_LOST, "worker-1")
    project.until_event(TASK_INTERRUPTED, "worker-2")
    counts = {"ps-0": 1, "worker-0": 2, "worker-1": 2, "worker-2": 2}
    until(lambda: project.counts() == counts, "they come back")
    project.until_running("ps-0", "worker-0", "worker-1", "worker-2")
    assert project.container("worker-0") == kept
    assert project.container("worker-1") not in ("", killed)
    assert project.container("worker-2") not in ("", stopped)

    project.open()
    outputs = project.finished()
    assert outputs["state"] == "succeeded"
    assert all(f"worker-{index} ends after" in outputs["logs"][f"worker-{index}"][-1] for index in range(3))
    assert project.counts() == counts


def test_training_goes_on_while_the_controller_is_killed_and_nothing_is_lost(project: DockerProject) -> None:
    project.write(f"{NOW}, workers=1, log_lines=10000", GATED)
    project.up()
    project.until_running("worker-0")
    controller = project.container("controller")
    project.docker("kill", controller)
    until(lambda: project.container("controller") not in ("", controller), "another controller")
    until(lambda: len(ticks(project)) > 20, "more output")
    known = ticks(project)
    assert known == [*range(len(known))]

    record = project.record().record_id()
    lose_record(project)
    seen = BACKEND.runner.observe(project.cluster, "", ViewRequest())
    assert "its disk was lost. `pulumi up --refresh` restores it" in " ".join(seen.problems)
    project.up("--refresh")
    project.open()
    outputs = project.finished()
    begins, *printed, ends = outputs["logs"]["worker-0"]
    numbers = [int(line.removeprefix("tick ")) for line in printed]
    assert begins.startswith("worker-0 begins")
    assert numbers[: len(known)] == known, "the copy is in the record again"
    assert numbers == sorted(set(numbers)), "the rest follows: only what the lost volume had after the copy is missing"
    assert ends == f"worker-0 ends after {numbers[-1] + 1}"
    assert project.counts() == {"worker-0": 1}
    assert (project.record().record_id(), project.job().tasks["worker-0"].attempt) == (record, 1)
    assert [kind for kind, _, _ in project.events()].count(RECORD_RESTORED) == 1


def ticks(project: DockerProject) -> list[int]:
    """The ticks that the record has. The last line may be unfinished."""
    lines = project.look(10_000).view.logs["worker-0"]
    return [int(match[1]) for line in lines if (match := re.fullmatch(r"tick (\d+)", line.text))]


def lose_record(project: DockerProject) -> None:
    """The controller begins on an empty volume, and its launchers still run."""
    service, volume = project.service("controller"), volume_name(project.cluster, RECORD_VOLUME)
    project.docker("service", "scale", f"{service}=0")
    until(lambda: not project.container("controller"), "it has ended")
    ended = project.docker("ps", "--all", "--quiet", f"--filter=volume={volume}").split()
    project.docker("rm", "--force", *ended)
    project.docker("volume", "rm", volume)
    project.docker("service", "scale", f"{service}=1")
    until(lambda: project.container("controller"), "another controller")


def test_the_kernel_keeps_the_limit_and_its_kill_is_out_of_memory(project: DockerProject) -> None:
    project.write(JOB + ', workers=1, jobs={"worker": {"memory": "64MiB"}}', EATER)
    done = project.up(fails=True)
    outputs = project.outputs()
    assert outputs["logs"]["worker-0"] == ["eater: -9"]
    assert outputs["tasks"][0]["status"] == "out of memory"
    assert "the run failed: worker-0 ran out of memory" in done.output
