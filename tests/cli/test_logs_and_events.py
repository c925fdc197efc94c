"""`logs`, `events`, `explain` and `status --watch` on real clusters of this machine."""

import json
import re
import signal
import subprocess

from tests.cli.calling import open_gate, start, tfdeploy
from tests.integration.conftest import Project
from tests.verbs import Terminal
from tests.waiting import PATIENCE, until

ONE = 'command=["python", "train.py"], code="code", workers=1, wait="0"'


def terminal(project: Project, *arguments: str, **env: str) -> Terminal:
    """The command with somebody at a terminal before it."""
    about = {**project.env, "TERM": "xterm", "COLUMNS": "100", **env}
    return Terminal(["tfdeploy", *arguments], project.program, about)


def test_a_reader_that_goes_away_ends_logs_quietly(training: Project) -> None:
    for arguments in ("logs", "logs -f", "logs -f ps-0"):
        done = subprocess.run(
            ["bash", "-c", f"tfdeploy {arguments} | head -1"],
            cwd=training.program,
            env=training.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


def test_ctrl_c_ends_following_quietly(training: Project) -> None:
    following = start(training, "logs", "-f")
    assert following.stdout is not None
    following.stdout.readline()
    following.send_signal(signal.SIGINT)
    assert (following.communicate(timeout=PATIENCE)[1], following.returncode) == ("", 130)


def test_watch_draws_progress_until_the_job_is_over(training: Project) -> None:
    watching = terminal(training, "show", "--watch")
    quits = terminal(training, "show", "--watch")
    for one in (watching, quits):
        one.until_said("/999999 0%")
        one.until_said("steps/s")
    curve = r"worker-1  .*loss [0-9.e-]+ [▁-█]+"
    until(lambda: re.search(curve, quits.read()), "the curve of worker-1")
    quits.type("q")
    assert quits.end() == 0
    assert re.search(curve, quits.said)
    silent = start(training, "show", "--watch")
    open_gate(training)
    assert watching.end() == 0
    assert watching.said.rstrip().rpartition("Run ")[2].startswith("succeeded: worker-0 succeeded.")
    assert "\x1b[?1049h" not in watching.said
    said, _ = silent.communicate(timeout=PATIENCE)
    assert silent.returncode == 0
    assert "\x1b" not in said
    assert "Run succeeded" in said


def test_logs_follow_until_the_job_is_over_and_are_there_after_destroy(training: Project) -> None:
    following = start(training, "logs", "-f")
    only = start(training, "logs", "-f", "worker:1", "--json")
    assert following.stdout is not None
    first = [following.stdout.readline() for _ in range(8)]
    assert all(re.match(r"(ps|worker)-[01] \| ", line) for line in first)
    open_gate(training)
    lines = [*first, *following.stdout]
    assert following.stderr is not None
    assert (following.wait(PATIENCE), following.stderr.read()) == (0, "")
    assert {"worker-0 | accuracy: 0.5\n", "worker-1 | accuracy: 0.5\n", "ps-0 | a warning of ps-0\n"} <= {*lines}
    documents = [json.loads(line) for line in only.communicate(timeout=PATIENCE)[0].splitlines()]
    assert {one["task"] for one in documents} == {"worker-1"}
    assert documents[-1]["text"] == "accuracy: 0.5"

    whole = tfdeploy(training, "logs")
    assert sorted(whole.out.splitlines(keepends=True)) == sorted(lines)
    assert tfdeploy(training, "logs", "--stderr", "worker-0").out == "worker-0 | a warning of worker-0\n"
    timed = tfdeploy(training, "logs", "--stderr", "worker-0", "--timestamps").out
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z worker-0 \| a warning of worker-0\n", timed)
    last = tfdeploy(training, "logs", "worker", "--tail", "1").out
    assert sorted(last.splitlines()) == ["worker-0 | accuracy: 0.5", "worker-1 | accuracy: 0.5"]
    (row,) = [row for row in tfdeploy(training, "show", "--json").data[0]["tasks"] if row["hostname"] == "worker-0"]
    by_container = tfdeploy(training, "logs", row["container"], "--grep", "^begins")
    assert by_container.out == "worker-0 | begins worker-0\n"
    assert tfdeploy(training, "logs", "worker-7").code == 3
    assert tfdeploy(training, "logs", "--grep", "(").code == 2

    training.destroy()
    assert tfdeploy(training, "logs").out == whole.out
    run = tfdeploy(training, "show", "--json").data[0]["run"]
    assert tfdeploy(training, "logs", "--run", run, "--since", "1h").out == whole.out
    assert tfdeploy(training, "logs", "--since", "2999-01-01").out == ""
    assert "has no run 'x'. Its runs are: " in tfdeploy(training, "logs", "--run", "x").err


BYTES = b"\xff\xfe binary\r10%\r100%\x1b]0;stolen\x07 \x1b[31mred\x1b[0m \x1b[2J end\n\nno newline"


def test_bytes_are_saved_as_they_are_and_a_terminal_is_safe(project: Project) -> None:
    project.write(ONE, f"import sys\nsys.stdout.buffer.write({BYTES!r})\n")
    project.up(env={"TFDEPLOY_WAIT": "10m"})
    target = project.folder / "saved"
    assert tfdeploy(project, "logs", "worker-0", "--save", str(target)).out == ""
    assert target.read_bytes() == BYTES + b"\n"
    shown = terminal(project, "logs")
    assert shown.end() == 0
    assert "100% \x1b[31mred\x1b[0m  end\x1b[0m\r\n" in shown.said
    assert "\x1b]" not in shown.said
    assert "\x1b[2J" not in shown.said
    assert shown.said.startswith("\x1b[36mworker-0 | \x1b[0m")
    plain = terminal(project, "logs", NO_COLOR="1")
    assert plain.end() == 0
    assert "\x1b" not in plain.said


DIES_ONCE = """\
import os, pathlib, signal, time
counter = pathlib.Path(os.environ["COUNTER"])
number = len(list(counter.glob("life-*")))
(counter / f"life-{number}").touch()
print("life", number, flush=True)
if number == 0:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_worker_stands_in_events_and_its_attempt_in_logs(project: Project) -> None:
    project.write(f'{ONE}, env={{"COUNTER": __import__("os").environ["COUNTER"]}}', DIES_ONCE)
    project.up()
    followed = tfdeploy(project, "events", "--follow")
    assert followed.code == 0
    told = tfdeploy(project, "events", "--json").data
    assert (told[0]["kind"], told[0]["task"], told[0]["sentence"]) == ("run_submitted", "", "run submitted")
    (again,) = [one for one in told if one["kind"] == "task_restarting"]
    assert (again["task"], again["exit"]["signal"], again["delay"]) == ("worker-0", "SIGKILL", 0)
    assert (again["failures"], again["max_failures"]) == (1, 3)
    assert again["sentence"] == "worker-0 SIGKILL: restarting now (1 of 3)"
    assert ("task_started", "worker-0", 2) in [(one["kind"], one["task"], one["attempt"]) for one in told]
    assert (told[-1]["kind"], told[-1]["task"]) == ("run_ended", "")
    assert (told[-1]["result"]["state"], told[-1]["result"]["reason"]) == ("succeeded", "worker-0 succeeded")
    assert len(followed.out.splitlines()) == len(told)
    assert re.search(r"worker-0 +SIGKILL: restarting now \(1 of 3\)$", followed.out, re.MULTILINE)
    assert tfdeploy(project, "logs", "--previous").out == "worker-0 | life 0\n"
    assert tfdeploy(project, "logs").out == "worker-0 | life 0\nworker-0 | life 1\n"
    fine = tfdeploy(project, "explain")
    assert (fine.code, fine.out) == (0, "The run succeeded: worker-0 succeeded.\n")
