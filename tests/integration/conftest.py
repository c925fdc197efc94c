"""A Pulumi project in a folder of its own, driven by the real engine as a user drives it."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

import psutil

from tests.arguments import merged
from tests.clusters import cluster_ref
from tests.pulumi_home import pulumi_home
from tests.pulumi_python import plain_python
from tests.secrets_provider import STACK_SETTINGS, secrets_provider
from tests.tensorflow_env import ONE_THREAD
from tests.verbs import Verbs
from tests.waiting import until
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.local.backend import BACKEND
from tfdeploy.backends.local.discover import cluster_of
from tfdeploy.backends.local.paths import Places
from tfdeploy.backends.local.supervisor import Supervisor, marked

ROOT = Path(__file__).parent.parent.parent

PROGRAM = """\
import pulumi
from tfdeploy import TensorFlowCluster

cluster = TensorFlowCluster("test", {arguments})
for name in ("status", "tasks", "machines", "state", "logs", "metrics", "endpoints", "artifacts", "cost"):
    pulumi.export(name, getattr(cluster, name))
"""

COUNTER = """\
import os, pathlib, sys, time
folder, hostname, run = pathlib.Path(os.environ["COUNTER"]), os.environ["TFDEPLOY_HOSTNAME"], os.environ["TFDEPLOY_RUN"]
counter = folder / hostname
counter.write_text(str(int(counter.read_text() if counter.exists() else 0) + 1))
(folder / f".{hostname}.{run}").touch()
print("trained", *sys.argv[1:])
while os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    time.sleep(1)
for index in range(len(list(filter(None, os.environ["TFDEPLOY_PS_HOSTS"].split(","))))):
    while not (folder / f".ps-{index}.{run}").exists():
        time.sleep(0.05)
"""
"""Counts its starts; the workers end when each ps has counted too."""

WAITS = """\
import os, pathlib, time
folder, hostname = pathlib.Path(os.environ["COUNTER"]), os.environ["TFDEPLOY_HOSTNAME"]
counter = folder / hostname
counter.write_text(str(int(counter.read_text() if counter.exists() else 0) + 1))
while not (folder / ".gate").exists():
    time.sleep(0.5)
"""
"""Counts its starts, and ends when the file `.gate` exists."""

SECRET = "4dabf18193072939515e22adb298388d"
"""The key that marks what is encrypted in Pulumi's state."""

CHANGES = {"create", "update", "delete", "replace", "create-replacement", "delete-replaced"}
"""Operations of Pulumi's engine that change a resource."""

NO_RESOURCES = {"manifest": {"time": "2026-01-01T00:00:00Z", "version": "3.0.0", "magic": sha256(b"3.0.0").hexdigest()}}
"""The state of a new stack. Pulumi's magic is the hash of the version that wrote it."""

PLUGINS = (
    "pulumi-language-python-exec",
    "pulumi-resource-pulumi-python",
    "pulumi.dynamic",
    "pulumi-resource-tfdeploy",
    "tests.box.provider.serve",
)
"""What Pulumi starts and tfdeploy's code, or that of the tests, runs in: parts of their commands."""


def imported(backend: str, *parts: str) -> tuple[str, ...]:
    """The modules that import what an update with this backend does; `parts` are modules of the backend."""
    of_all = ("tfdeploy.program.registration", "tfdeploy.report.update_wait")
    return (*of_all, *(f"tfdeploy.backends.{backend}.{part}" for part in ("backend", "planner", *parts)))


@contextmanager
def plugins_end(pid: int) -> Iterator[None]:
    """Let a `pulumi` die, and wait for the end of its `PLUGINS`. Hosts of languages and providers of others end within five minutes."""
    started: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        started = [one for one in psutil.Process(pid).children(recursive=True) if _is_plugin(one)]
    yield
    until(lambda: not any(map(_is_plugin, started)), "the end of the plugins", seen=lambda: started)


def _is_halted(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    return True


def _is_plugin(process: psutil.Process) -> bool:
    """Whether it is one that has not ended; a zombie has no command."""
    try:
        command = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return process.is_running() and any(name in command for name in PLUGINS)


@dataclass(frozen=True)
class Call:
    """One call of the Pulumi CLI, ended."""

    exit_code: int
    output: str
    events: str = ""
    """The engine's own log of its events, a JSON object a line; empty for commands other than `up`."""

    def steps(self) -> dict[str, int]:
        """How many resources of each step: `{"unchanged": 7}`."""
        text = self.output.rpartition("Resources:")[2]
        return {
            word: int(number)
            for number, word in re.findall(r"(\d+) (unchanged|created|updated|deleted|replaced)", text)
        }

    def touched(self) -> set[str]:
        """The names of the dynamic resources that were created, updated, deleted or replaced.

        Read from the events, not from what is printed: Pulumi prints `@ updating....` without ending the line, and sometimes the
        row of a resource follows in the same line.
        """
        dynamic = [one for one in self._done() if one["type"].startswith("pulumi-python:dynamic/")]
        return {one["urn"].rpartition("::")[2] for one in dynamic if one["op"] in CHANGES}

    def other_outputs(self) -> set[str]:
        """The names of the stack, components and resources with outputs that differ from those of the update before."""

        def outputs(one: Mapping[str, Any], when: str) -> Any:
            return (one.get(when) or {}).get("outputs") or {}

        return {one["urn"].rpartition("::")[2] for one in self._done() if outputs(one, "old") != outputs(one, "new")}

    def _done(self) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in self.events.splitlines()]
        return [event["resOutputsEvent"]["metadata"] for event in events if "resOutputsEvent" in event]


class Project:
    """A folder with a Pulumi program, a state backend and a home of its own."""

    modules: Sequence[str] = imported("local")
    """What Pulumi's programs have imported when they start, unless a test has `use_plain_python`."""

    def __init__(self, folder: Path, name: str = "project") -> None:
        self.folder = folder
        self.name = name
        self.stack = "test"
        self.env = {
            **os.environ,
            **ONE_THREAD,
            "XDG_STATE_HOME": str(folder / "state"),
            **pulumi_home(folder, self.modules),
            "PULUMI_BACKEND_URL": f"file://{folder / 'backend'}",
            **secrets_provider(),
            "PULUMI_CONFIG_PASSPHRASE": "of the tests",
            "PULUMI_CONFIG_PASSPHRASE_FILE": "",
            "COUNTER": str(folder / "counter"),
        }
        self._refs: dict[str, ClusterRef] = {}
        for part in ("backend", "counter", "program"):
            (folder / part).mkdir(parents=True)
        self.program = folder / "program"

    def write(self, arguments: str, script: str = COUNTER, program: str = PROGRAM) -> None:
        """Write the Pulumi program and, as `code/train.py`, what its tasks run.

        Python would run the bytecode of the former program if that has the same size and was written in the same second.
        """
        shutil.rmtree(self.program / "__pycache__", ignore_errors=True)
        (self.program / "Pulumi.yaml").write_text(f"name: {self.name}\nruntime: python\n")
        (self.program / "__main__.py").write_text(program.replace("{arguments}", merged(arguments)))
        (self.program / "code").mkdir(exist_ok=True)
        (self.program / "code" / "train.py").write_text(script)

    def use_plain_python(self) -> None:
        """Have Pulumi start Python as it does for users: its programs and plugins are its descendants."""
        self.env["PULUMI_PYTHON_CMD"] = str(plain_python())

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start the CLI in a process group of its own, as a terminal does."""
        return self.begin("pulumi", *arguments, "--non-interactive", env=env)

    def begin(self, *command: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a command likewise, in the folder of the program."""
        return subprocess.Popen(
            command,
            cwd=self.program,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def kill(self, process: "subprocess.Popen[str]") -> None:
        """Kill what `start` started; but not while it writes the stack's state, which Pulumi does in place: a torn one has to be
        repaired by hand."""
        with plugins_end(process.pid):
            until(lambda: self._halted_with_whole_state(process), "a state that is whole")
            process.kill()
            process.wait()

    def _halted_with_whole_state(self, process: "subprocess.Popen[str]") -> bool:
        process.send_signal(signal.SIGSTOP)  # nothing where it has ended
        until(lambda: _is_halted(process.pid), "a stopped process")
        try:
            for state in (self.folder / "backend").glob(".pulumi/stacks/**/*.json*"):
                json.loads(state.read_text())
        except ValueError:
            process.send_signal(signal.SIGCONT)
            return False
        return True

    def set(self, name: str, value: str, *options: str) -> None:
        """`pulumi config set NAME VALUE`."""
        done = self.call("config", "set", name, value, *options, "--stack", self.stack)
        assert done.exit_code == 0, done.output

    def customize_python(self, program: str) -> dict[str, str]:
        """The variables with which each process of Python runs this at its start, as a `sitecustomize`."""
        site = self.folder / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(program)
        return {"PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))}

    def tfdeploy(self, *arguments: str) -> str:
        """What the command prints, which must succeed."""
        code, out, err = Verbs(self.program, self.env).call(*arguments)
        assert code == 0, err
        return out.decode()

    def call(self, *arguments: str, env: Mapping[str, str] | None = None) -> Call:
        """Call the CLI and wait for its end."""
        return self.run("pulumi", *arguments, "--non-interactive", env=env)

    def run(self, *command: str, env: Mapping[str, str] | None = None) -> Call:
        """Run any command to its end, in the folder of the program."""
        process = self.begin(*command, env=env)
        output, _ = process.communicate()
        return Call(process.returncode, output)

    def init(self) -> None:
        """Create the stack."""
        state = self.state()
        state.parent.mkdir(parents=True, exist_ok=True)
        (state.parents[2] / "meta.yaml").write_text("version: 1\n")
        checkpoint = {"stack": f"organization/{self.name}/{self.stack}", "latest": NO_RESOURCES}
        state.write_text(json.dumps({"version": 3, "checkpoint": checkpoint}))
        settings = self.program / f"Pulumi.{self.stack}.yaml"
        known = settings.read_text() if settings.exists() else ""
        settings.write_text(known if STACK_SETTINGS in known else STACK_SETTINGS + known)
        self._select()

    def _select(self) -> None:
        """Make the stack the one that commands without `--stack` mean."""
        name = f"{self.name}-{sha1(str(self.program / 'Pulumi.yaml').encode()).hexdigest()}-workspace.json"
        workspace = Path(self.env["PULUMI_HOME"]) / "workspaces" / name
        workspace.parent.mkdir(exist_ok=True)
        stacks = {self.env["PULUMI_BACKEND_URL"]: f"organization/{self.name}/{self.stack}"}
        workspace.write_text(json.dumps({"stacks": stacks}))

    def up(self, *options: str, env: Mapping[str, str] | None = None, fails: bool = False) -> Call:
        """`pulumi up`; fails the test when it ends otherwise than expected."""
        log = self.folder / "events"
        log.unlink(missing_ok=True)
        # The option for the log is one of Pulumi's for debugging.
        more = {"PULUMI_DEBUG_COMMANDS": "true", **(env or {})}
        logged = ("--event-log", str(log))
        done = self.call("up", "--yes", "--skip-preview", "--stack", self.stack, *logged, *options, env=more)
        assert (done.exit_code != 0) == fails, done.output
        return replace(done, events=log.read_text() if log.exists() else "")

    def state(self) -> Path:
        """The file with the state of the stack. Pulumi's own command for it costs as much as half an update."""
        stacks = Path(self.env["PULUMI_BACKEND_URL"].removeprefix("file://"), ".pulumi/stacks", self.name)
        return stacks / f"{self.stack}.json"

    def outputs(self) -> dict[str, Any]:
        """All stack outputs; Pulumi is asked for them where some are secrets."""
        stacks = [one for one in self.resources() if one["type"] == "pulumi:pulumi:Stack"]
        found: dict[str, Any] = stacks[0].get("outputs", {}) if stacks else {}
        if SECRET not in json.dumps(found):
            return found
        done = self.call("stack", "output", "--json", "--show-secrets", "--stack", self.stack)
        assert done.exit_code == 0, done.output
        shown: dict[str, Any] = json.loads(done.output)
        return shown

    def resources(self) -> list[dict[str, Any]]:
        """The resources in the state of the stack."""
        found: list[dict[str, Any]] = json.loads(self.state().read_text())["checkpoint"]["latest"].get("resources", [])
        return found

    def shown(self, cluster: str = "test") -> dict[str, Any]:
        """What `tfdeploy status --json` says of a cluster now: the outputs, but for `logs` and `status`; Pulumi is not called."""
        (document,) = json.loads(self.tfdeploy("show", "--json", "--cluster", cluster))
        found: dict[str, Any] = document
        return found

    def statuses(self) -> dict[str, str]:
        """Hostname to status, from the stack output `tasks`."""
        return {row["hostname"]: row["status"] for row in self.outputs()["tasks"]}

    def counts(self) -> dict[str, int]:
        """How often each task's program was started."""
        files = [path for path in (self.folder / "counter").iterdir() if not path.name.startswith(".")]
        return {path.name: int(path.read_text() or 0) for path in files}

    def until_counts(self, counts: Mapping[str, int]) -> None:
        """Wait until the programs were started so often. A task is "running" before its program has written a line."""
        until(lambda: self.counts() == counts, f"the starts {counts}", seen=self.counts)

    def refs(self) -> list[ClusterRef]:
        """All clusters that this project has had, the latest last; also those of a state folder that was deleted meanwhile."""
        for entry in self._entries():
            if entry["login"] == self.env["PULUMI_BACKEND_URL"]:
                self._refs.pop(entry["cluster"]["id"], None)
                self._refs[entry["cluster"]["id"]] = entry["cluster"]
        return list(self._refs.values())

    def _entries(self) -> list[dict[str, Any]]:
        """What the registry has, the latest last; another login may share the state folder."""
        files = (Path(self.env["XDG_STATE_HOME"]) / "tfdeploy/registry").glob("[!.]*.json")
        return sorted((json.loads(path.read_text()) for path in files), key=lambda entry: float(entry["begun"]))

    def ref(self, name: str = "test") -> ClusterRef:
        """The latest cluster of that name, of this stack if it has one; one without an id before the first update."""
        named = [ref for ref in self.refs() if ref["name"] == name]
        found = [ref for ref in named if (ref["project"], ref["stack"]) == (self.name, self.stack)] or named
        home = str(self.folder / "state/tfdeploy/clusters/none")
        return found[-1] if found else cluster_ref("local", home, self.name, self.stack, name, "")

    def places(self, cluster: str = "test") -> Places:
        """Where a cluster of this project is."""
        return Places(self.ref(cluster)["home"])

    def log(self, hostname: str, cluster: str = "test") -> str:
        """All that a task has printed on stdout in the present run."""
        record = Record(self.places(cluster).record)
        job = record.current()
        if job is None:
            return ""
        return record.log(job.spec.id, hostname).printed(STDOUT).decode()

    def supervisor(self, cluster: str = "test") -> Supervisor:
        """A cluster's supervisord."""
        return Supervisor(self.places(cluster))

    def supervisord(self) -> psutil.Process:
        """The cluster's supervisord as a process."""
        pid = int(self.places().supervisor_pid.read_text())
        return psutil.Process(pid)

    def child(self, hostname: str, cluster: str = "test") -> psutil.Process:
        """The process that a task's program is."""
        return psutil.Process(int(self.supervisor(cluster).programs()[hostname]["pid"])).children()[0]

    def until_running(self, *hostnames: str) -> None:
        """Wait until the record says that these tasks run."""

        def running() -> bool:
            record = self.places().record
            job = Record(record).current() if record.exists() else None
            return job is not None and all(
                name in job.tasks and job.tasks[name].state == "running" for name in hostnames
            )

        until(running, f"{hostnames} running")

    def destroy(self) -> Call:
        """`pulumi destroy`, which must succeed and leave nothing."""
        done = self.call("destroy", "--yes", "--skip-preview", "--stack", self.stack)
        assert done.exit_code == 0, done.output
        self.assert_nothing_left()
        return done

    def assert_nothing_left(self) -> None:
        """No process, socket, lock, or folder of a cluster of this project."""
        assert self._homes() == []
        for ref in self.refs():
            places = Places(ref["home"])
            assert marked(places.home) == []
            assert not places.lock.exists()

    def _homes(self) -> list[Path]:
        """The folders of clusters on this machine, but for those of another login that shares the state folder."""
        others = {entry["cluster"]["id"] for entry in self._entries()} - {ref["id"] for ref in self.refs()}
        homes = (Path(self.env["XDG_STATE_HOME"]) / "tfdeploy/clusters").glob("*/")
        return [home for home in homes if home.name.rpartition("-")[2] not in others]

    def clean(self) -> None:
        """Take away whatever the test left, without Pulumi."""
        for home in self._homes():
            BACKEND.runner.delete_all(cluster_of(str(home)), "", {"volumes": False, "record": False})
