"""`tfdeploy run`: a cluster for one command, from nothing to nothing."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.engine.cli import docker
from tests.integration.conftest import imported
from tests.pulumi_home import pulumi_home
from tests.tensorflow_env import ONE_THREAD
from tests.verbs import Terminal
from tests.waiting import until
from tfdeploy.backends.local.paths import Places
from tfdeploy.backends.local.supervisor import marked

# Knows nothing of tfdeploy; its flags are those of the classic examples.
REPLICA = """\
import argparse
import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser()
for flag in ("--ps_hosts", "--worker_hosts", "--job_name"):
    parser.add_argument(flag)
parser.add_argument("--worker_index", type=int)
flags = parser.parse_args()
tf.disable_eager_execution()
spec = tf.train.ClusterSpec({"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")})
server = tf.train.Server(spec, job_name=flags.job_name, task_index=flags.worker_index)
if flags.job_name == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=spec)):
    x = tf.get_variable("x", initializer=5.0)
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.25).minimize(tf.square(x - 2), global_step=step)
with tf.train.MonitoredTrainingSession(server.target, is_chief=flags.worker_index == 0) as session:
    for _ in range(30):
        session.run(train)
    print("x on", x.device, "is", round(float(session.run(x)), 3))
"""

SLEEPER = """\
import signal, sys, time
def leave(*_):
    print("last words", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("begins", flush=True)
time.sleep(600)
"""

SHOWS_GPUS = """\
import os, pathlib, time
here = pathlib.Path(os.environ["HERE"])
print(os.environ["CUDA_VISIBLE_DEVICES"] or "none", os.getuid(), open("beside").read(), flush=True)
(here / os.environ["TFDEPLOY_HOSTNAME"]).touch()
while not (here / "ps-0").exists() or os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    time.sleep(0.05)
"""
"""The workers end when the ps has printed its line too."""

FAILS = """\
import sys, time
if sys.argv[2] == "0":
    time.sleep(600)
print("no newline", end="")
print("why", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
"""The first worker goes on; the second fails."""


class Shell:
    """A folder of a user's, and a state of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self.state = folder / "state"
        self.env = {
            **os.environ,
            **ONE_THREAD,
            "XDG_STATE_HOME": str(self.state),
            **pulumi_home(folder, imported("local")),
            "PULUMI_BACKEND_URL": "file:///nowhere/at/all",
        }

    def write(self, script: str) -> None:
        """Write what is to run, as `train.py`."""
        (self.folder / "train.py").write_text(script)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start `tfdeploy run`."""
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(["tfdeploy", "run", *arguments], cwd=self.folder, env=self.env, **pipes)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """`tfdeploy run`, to its end: exit code, stdout, stderr."""
        process = self.start(*arguments)
        out, err = process.communicate()
        return process.returncode, out, err

    def terminal(self, *arguments: str) -> Terminal:
        """`tfdeploy run` in a terminal."""
        return Terminal(["tfdeploy", "run", *arguments], self.folder, self.env)

    def homes(self) -> list[Path]:
        """The folders of clusters that stand, or have stood."""
        known = [json.loads(path.read_text()) for path in (self.state / "tfdeploy/registry").glob("*.json")]
        return [Path(entry["cluster"]["home"]) for entry in known]

    def assert_nothing_left(self) -> None:
        """No process, socket or folder of a cluster, no stack; and the registry says that it has ended."""
        for home in self.homes():
            assert marked(home) == []
            assert not home.exists()
            assert not Places(str(home)).lock.exists()
        for path in (self.state / "tfdeploy/registry").glob("*.json"):
            assert json.loads(path.read_text())["ended"] > 0
        assert list((self.state / "tfdeploy/run/calls").iterdir()) == []
        backend = self.state / "tfdeploy/run/backend"
        assert [path for path in backend.rglob("*") if path.is_file() and not path.name.startswith("meta.")] == []
        assert list((self.state / "tfdeploy/run").glob("Pulumi.*.yaml")) == []


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    found = Shell(tmp_path)
    yield found
    for home in found.homes():
        for process in marked(home):
            with suppress(ProcessLookupError):
                process.kill()


def test_a_program_that_knows_nothing_of_tfdeploy_runs_by_one_command(shell: Shell) -> None:
    (shell.folder / "mnist_replica.py").write_text(REPLICA)
    flags = ["--ps_hosts", "{ps_hosts}", "--worker_hosts", "{worker_hosts}", "--job_name", "{job_name}"]
    command = ["python", "mnist_replica.py", *flags, "--worker_index", "{task_index}"]
    code, out, err = shell.run("--workers", "1", "--ps", "1", "--", *command)
    assert code == 0, err
    assert "worker-0 | x on /job:ps/task:0 is 2.0\n" in out
    assert "ps-0 | " not in out
    record = Path(err.partition("Record: ")[2].splitlines()[0])
    assert "2.0" in next(record.glob("runs/*/logs/worker-0/0.log")).read_text()
    shell.assert_nothing_left()


def test_the_exit_code_is_that_of_the_task_that_failed(shell: Shell) -> None:
    shell.write(FAILS)
    code, out, err = shell.run(
        "--workers=2", "--worker-memory", "512", "-e", "A=b", "python", "train.py", "7", "{task_index}"
    )
    assert (code, out) == (7, "worker-1 | no newline\n")
    assert "worker-1 | why\n" in err
    assert "run: failed: worker-1" in err
    shell.assert_nothing_left()
    shell.write("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    code, out, _ = shell.run("--json", "--", "python", "train.py")
    document = json.loads(out)
    assert (code, document["exit_code"], document["state"]) == (139, 139, "failed")
    shell.assert_nothing_left()


def test_what_cannot_be_is_refused_and_nothing_is_left(shell: Shell) -> None:
    shell.write("")
    assert shell.run("--workers", "1")[0] == 2
    code, out, err = shell.run("--", "python", "nothing.py")
    assert (code, out) == (2, "")
    assert err == "tfdeploy: run: command: 'nothing.py' is not a file of `code`. It has train.py.\n"
    shell.assert_nothing_left()


def test_the_time_limit_is_the_reason_that_is_printed_and_recorded(shell: Shell) -> None:
    shell.write(SLEEPER)
    code, out, err = shell.run("--timeout", "10s", "--json", "--", "python", "train.py")
    document = json.loads(out)
    assert (code, document["exit_code"], document["state"]) == (5, 5, "stopped"), err
    assert "tfdeploy run: stopped: after its time limit of 10s\n" in err
    assert document["tasks"][0]["status"] == "stopped (time limit)"
    shell.assert_nothing_left()


def test_ctrl_c_stops_the_job_and_leaves_nothing(shell: Shell) -> None:
    shell.write(SLEEPER)
    terminal = shell.terminal("--workers", "2", "--", "python", "train.py")
    terminal.until_said("worker-0 | begins")
    terminal.until_said("worker-1 | begins")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert "worker-0 | last words" in terminal.said
    assert "SIGINT: stopping the run" in terminal.said
    assert "Traceback" not in terminal.said
    shell.assert_nothing_left()


def test_a_signal_while_the_cluster_is_made_leaves_nothing(shell: Shell) -> None:
    shell.write(SLEEPER)
    process = shell.start("--", "python", "train.py")
    until(shell.homes, "the cluster is being made")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 143, err
    shell.assert_nothing_left()


def test_worker_0_runs_in_this_terminal(shell: Shell) -> None:
    shell.write(
        "import json, os, sys\n"
        "name = os.environ['TFDEPLOY_HOSTNAME']\n"
        "print(name, 'at a terminal:', sys.stdin.isatty(), sys.argv[1:], flush=True)\n"
        "if name == 'worker-0':\n"
        "    answer = input('your word? ')\n"
        "    print('heard', answer, json.loads(os.environ['TF_CONFIG'])['task'], flush=True)\n"
        "    sys.exit(9)\n"
    )
    terminal = shell.terminal("--here", "--workers", "2", "--", "python", "train.py", "{job_name}/{task_index}")
    terminal.until_said("your word? ")
    terminal.until_said("worker-1 | worker-1 at a terminal: False ['worker/1']")
    terminal.type("forty-two\n")
    terminal.until_said("heard forty-two {'type': 'worker', 'index': 0}")
    assert terminal.end() == 9
    assert "worker-0 at a terminal: True ['worker/0']" in terminal.said
    assert "worker-0 |" not in terminal.said
    shell.assert_nothing_left()


def test_a_cluster_that_is_kept_stands_until_it_is_removed(shell: Shell) -> None:
    shell.write("print('done')")
    code, _, err = shell.run("--keep", "--name", "mine", "--", "python", "train.py")
    assert code == 0, err
    assert "tfdeploy run --remove mine" in err
    assert shell.homes()[0].exists()
    assert shell.run("--name", "mine", "--", "python", "train.py")[0] == 2
    assert shell.run("--remove", "mine")[0] == 0
    shell.assert_nothing_left()
    assert shell.run("--remove", "mine")[0] == 3


def test_a_second_ctrl_c_says_what_may_be_left_and_how_it_is_removed(shell: Shell) -> None:
    shell.write("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('begins')\ntime.sleep(600)")
    terminal = shell.terminal("--name", "mine", "--", "python", "train.py")
    terminal.until_said("worker-0 | begins")
    terminal.type("\x03")
    terminal.until_said("SIGINT: stopping the run")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert (
        "mine may still exist on local; its removal continues in the background. Use `tfdeploy run --remove mine`"
        in " ".join(terminal.said.split())
    )
    assert shell.run("--remove", "mine")[0] == 0
    shell.assert_nothing_left()


def test_in_containers_it_is_the_same(shell: Shell, engine: str, python_image: str) -> None:
    shell.env["DOCKER_HOST"] = engine
    shell.write("import pathlib, sys; print(sys.argv[1:], list(pathlib.Path('/data').iterdir())); sys.exit(4)")
    (shell.folder / "data").mkdir()
    (shell.folder / "data" / "file").touch()
    mounted = f"{shell.folder / 'data'}:/data:ro"
    command = ["python", "train.py", "{job_name}", "{worker_hosts}"]
    volumes = ["--volume", mounted, "--set", "container.retain_volumes=false"]
    code, out, err = shell.run("--on", "docker", "--image", python_image, *volumes, "--", *command)
    assert code == 4, err
    assert out.startswith("worker-0 | ['worker', 'worker-0:")
    assert out.endswith("[PosixPath('/data/file')]\n")
    (file,) = (shell.state / "tfdeploy/registry").glob("*.json")
    own = f"label=tfdeploy.cluster-id={json.loads(file.read_text())['cluster']['id']}"
    for kind in ("service", "network", "config", "secret", "volume"):
        assert docker(engine, kind, "ls", "--quiet", "--filter", own) == ""
    shell.assert_nothing_left()


def test_each_task_has_gpus_of_its_own_and_the_caller_is_the_user(shell: Shell) -> None:
    """`nvidia-smi` stands in for hardware: what is shown here is who is given which GPU."""
    tools = shell.folder.parent / "tools"
    tools.mkdir()
    (tools / "nvidia-smi").write_text("#!/bin/sh\nprintf '0\\n3\\n4\\n'\n")
    (tools / "nvidia-smi").chmod(0o755)
    shell.env["PATH"] = f"{tools}:{shell.env['PATH']}"
    shell.write(SHOWS_GPUS)
    (shell.folder / "beside").write_text("the caller's file")
    given = ["--workers=2", "--ps=1", "--worker-gpus=1", "--ps-gpus=1", "-e", f"HERE={tools}"]
    code, out, err = shell.run(*given, "--", "python", "train.py")
    assert code == 0, err
    told = dict(line.split(" | ", 1) for line in out.splitlines())
    assert sorted(told) == ["ps-0", "worker-0", "worker-1"]
    assert {text.partition(" ")[2] for text in told.values()} == {f"{os.getuid()} the caller's file"}
    assert sorted(text.partition(" ")[0] for text in told.values()) == ["0", "3", "4"], "no GPU has two tasks"
    shell.assert_nothing_left()
