"""TFMesos' ways in containers: a client beside the servers or through a tunnel; volumes, and the caller as user."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.engine.cli import docker
from tests.programs.program import Program
from tests.tensorflow_env import ONE_THREAD
from tfdeploy.backends.docker.labels import service_name


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
