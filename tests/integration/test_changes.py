"""Updates that wait, and files that change meanwhile."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests.integration.conftest import PROGRAM, Call, Project
from tests.verbs import COMMAND
from tests.waiting import until
from tfdeploy.paths import cache_folder

SLEEPER = """\
import os, sys, time
print("flags", *sys.argv[1:], flush=True)
time.sleep(600)
"""
JOB = 'command=["python", "train.py"], code="code", ps=1, workers={workers}, wait="0"'


@contextmanager
def suspended(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Meanwhile nothing of this command runs, as after Ctrl-Z."""
    members = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for member in members:
        member.suspend()
    try:
        yield
    finally:
        for member in members:
            member.resume()


def check_readers(project: Project) -> None:
    """Commands that only read come to an end; `explain` has 1 where something is wrong."""
    for verb in ("status", "logs", "explain", "runs"):
        done = project.run(COMMAND, verb)
        assert done.exit_code in (0, 1), (verb, done.output)


def test_ctrl_z_blocks_no_reader_and_ctrl_c_while_waiting_detaches_as_one_sentence_has_said(project: Project) -> None:
    project.write(JOB.format(workers=1).replace('wait="0"', 'wait="10m"'), SLEEPER)
    waiting = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(project.refs, "the update has begun")
    with suspended(waiting):
        check_readers(project)
    assert waiting.stdout is not None
    assert any("Ctrl-C detaches" in line for line in waiting.stdout)
    project.until_running("worker-0")
    with suspended(waiting), project.supervisor().locked():  # the lock that it may hold then
        check_readers(project)
    os.killpg(waiting.pid, signal.SIGINT)
    output, _ = waiting.communicate()
    assert output.rpartition("Diagnostics:")[2].count("Ctrl-C detaches: the training continues") == 1
    assert "Traceback" not in output
    project.up(env={"TFDEPLOY_WAIT": "0"})
    assert project.statuses() == {"ps-0": "running", "worker-0": "running"}
    project.destroy()


def test_output_in_the_code_folder_starts_no_other_run_and_a_change_during_the_update_is_not_shipped(
    project: Project,
) -> None:
    project.use_plain_python()
    job = 'command=["python", "train.py"], code="code", workers=1'
    changes = 'pathlib.Path("code/train.py").write_text("raise SystemExit(3)")\n'
    project.write(job, "print('original')", f"import pathlib\n{PROGRAM}{changes}")
    assert project.up().exit_code == 0
    assert project.outputs()["logs"]["worker-0"] == ["original"]
    assert list(cache_folder().glob(f"code/{project.ref()['id']}-*")) == [], "the controller has it"

    project.write(job, "print('original')")
    update = ("pulumi", "up", "--yes", "--non-interactive", "--stack", project.stack)
    for name in ("up.log", "up.txt"):
        with (project.program / "code" / name).open("w") as file:
            subprocess.run(update, cwd=project.program, env=project.env, stdout=file, stderr=file, check=True)
        text = (project.program / "code" / name).read_text()
        assert list(Call(0, text).steps()) == ["unchanged"]
        assert ("code: up.txt is not shipped now" in text) == (name == "up.txt")
    project.destroy()
