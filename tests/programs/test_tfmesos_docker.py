"""TFMesos' ways in containers: a client beside the servers or through a tunnel; volumes, and the caller as user."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex

import pytest

from tests.cli.test_run import Shell
from tests.engine.cli import docker
from tests.programs.program import Program
from tfdeploy.backends.docker import BACKEND
from tfdeploy.backends.docker.names import service

WRITES = """\
import os, pathlib, sys
print(pathlib.Path("beside.txt").read_text(), os.getuid())
pathlib.Path(sys.argv[1], os.environ["TFDEPLOY_HOSTNAME"]).write_text("here")
"""


@pytest.fixture
def program(
    programs: Callable[[str], Program], engine: str, tensorflow_image: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Program]:
    """The program in a copy, set to a real engine."""
    found = programs("tfmesos_plus")
    found.env["DOCKER_HOST"] = engine
    monkeypatch.setenv("XDG_STATE_HOME", found.env["XDG_STATE_HOME"])
    # Others may use the engine too: what stands on it has a name of its own.
    found.stack = f"test-{token_hex(3)}"
    found.init()
    found.configure(backend="docker", image=tensorflow_image)
    yield found
    for entry in map(json.loads, (path.read_text() for path in registry(found).glob("*.json"))):
        if not entry["ended"]:
            BACKEND.clear(entry["cluster"], "", {"volumes": False, "record": False})


def registry(program: Program) -> Path:
    """Where its clusters are known."""
    return program.folder / "state/tfdeploy/registry"


def test_on_a_swarm_the_client_is_a_task_or_comes_through_a_tunnel(
    program: Program, engine: str, tensorflow_image: str
) -> None:
    program.up()
    outputs = program.outputs()
    assert outputs["sum"] == 42
    cluster = json.loads(next(registry(program).glob("*.json")).read_text())["cluster"]
    for hostname in ("ps-0", "ps-1", "worker-0", "worker-1"):
        ports = docker(engine, "service", "inspect", "--format", "{{json .Endpoint.Ports}}", service(cluster, hostname))
        assert ports.strip() == "null"
        assert outputs["endpoints"][hostname].startswith(f"{hostname}:")

    given = ["--set", "backend=docker", "--set", f"image={tensorflow_image}"]
    command = [sys.executable, "plus.py", *given]
    alone = subprocess.run(
        command, cwd=program.program, env=program.env, capture_output=True, text=True, check=False, timeout=400
    )
    assert (alone.returncode, alone.stdout) == (0, "42\n"), alone.stderr
    program.destroy()
    ended = [json.loads(path.read_text())["ended"] for path in registry(program).glob("*.json")]
    assert len(ended) == 2
    assert all(ended)


def test_tasks_run_as_the_caller_with_the_callers_files_and_volumes(
    tmp_path: Path, engine: str, python_image: str
) -> None:
    shell = Shell(tmp_path)
    shell.env["DOCKER_HOST"] = engine
    shell.write(WRITES)
    (shell.folder / "beside.txt").write_text("from the caller's folder")
    results = tmp_path / "results"
    results.mkdir()
    os.chown(results, 1234, 5678)
    given = ["-V", f"{results}:{results}", "--set", "user=1234:5678", "--image", python_image]
    code, out, err = shell.run("--on", "docker", *given, "--", "python", "train.py", str(results), "{task_index}")
    assert (code, out) == (0, "[worker:0] from the caller's folder 1234\n"), err
    written = results / "worker-0"
    assert (written.read_text(), written.stat().st_uid, written.stat().st_gid) == ("here", 1234, 5678)
    shell.assert_nothing_left()
