"""TFMesos' ways in containers: a client beside the servers or through a tunnel; volumes, and the caller as user."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_run import Shell
from tests.engine.cli import docker
from tests.programs.program import Program
from tests.tensorflow_env import ONE_THREAD
from tfdeploy.backends.docker.labels import service_name

WRITES = """\
import os, pathlib, sys
print(pathlib.Path("beside.txt").read_text(), os.getuid())
pathlib.Path(sys.argv[1], os.environ["TFDEPLOY_HOSTNAME"]).write_text("here")
"""


@pytest.mark.full
def test_on_a_swarm_the_client_is_a_task_or_comes_through_a_tunnel(
    on_docker: Callable[[str, str], Program], engine: str, python_image: str, tensorflow_volume: str
) -> None:
    program = on_docker("tfmesos_plus", python_image)
    arguments = {
        "container": {"image": python_image, "volumes": [tensorflow_volume], "retain_volumes": False},
        "env": ONE_THREAD,
    }
    program.configure(**arguments)
    program.up()
    outputs = program.outputs()
    assert outputs["sum"] == 42
    served = dict.fromkeys(("ps-0", "ps-1", "worker-0", "worker-1"), "stopped (run finished)")
    assert program.statuses() == {"chief-0": "succeeded", **served}
    cluster = program.registered()[0]["cluster"]
    for hostname in ("ps-0", "ps-1", "worker-0", "worker-1"):
        ports = docker(
            engine, "service", "inspect", "--format", "{{json .Endpoint.Ports}}", service_name(cluster, hostname)
        )
        assert ports.strip() == "null"
    assert outputs["endpoints"] == {}, "nothing listens after the run"

    texts = {"backend": "docker", **{name: json.dumps(value) for name, value in arguments.items()}}
    given = [part for name, value in texts.items() for part in ("--set", f"{name}={value}")]
    command = [sys.executable, "plus.py", *given]
    alone = subprocess.run(
        command, cwd=program.program, env=program.env, capture_output=True, text=True, check=False, timeout=400
    )
    assert (alone.returncode, alone.stdout) == (0, "42\n"), alone.stderr
    program.destroy()
    ended = [entry["ended"] for entry in program.registered()]
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
    sets = ("--set", "container.user=1234:5678", "--set", "container.retain_volumes=false")
    given = ["--volume", f"{results}:{results}", *sets, "--image", python_image]
    code, out, err = shell.run("--on", "docker", *given, "--", "python", "train.py", str(results), "{task_index}")
    assert (code, out) == (0, "worker-0 | from the caller's folder 1234\n"), err
    written = results / "worker-0"
    assert (written.read_text(), written.stat().st_uid, written.stat().st_gid) == ("here", 1234, 5678)
    shell.assert_nothing_left()
