"""A job of DC/OS whose `log_dir` is in a bucket: moto's S3, by TensorFlow 2.16.2 with tensorflow-io."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.engine import published
from tests.engine.cli import docker
from tests.integration.conftest import ROOT
from tests.programs.program import Program
from tests.unit.backends.ec2.s3 import BUCKET, REGION, store
from tfdeploy.backends.docker.labels import service_name

KEY = "canary-of-the-bucket"
TASKS = ["ps-0", "worker-0"]


def processes(file: str, session: int) -> Iterator[str]:
    """This file of /proc for each process on this machine, those in containers too, but for those of one session."""
    for path in Path("/proc").glob(f"[0-9]*/{file}"):
        with suppress(OSError):
            if os.getsid(int(path.parent.name)) != session:
                yield path.read_bytes().decode(errors="replace")


def run_and_watch(program: Program) -> tuple[str, set[str], set[str]]:
    """`pulumi up`; what it printed, the tasks that had the key in their environment, and the command lines that had it.

    Pulumi itself gives the configuration to the caller's program in PULUMI_CONFIG, so the environments of its session are left out.
    """
    running = program.start("up", "--yes", "--skip-preview", "--stack", program.stack)
    tasks, commands = set(), set()
    while running.poll() is None:
        for environment in processes("environ", running.pid):
            if KEY in environment:
                values = dict(line.partition("=")[::2] for line in environment.split("\0"))
                tasks.add(values.get("TFDEPLOY_HOSTNAME", f"no task: {sorted(values)}"))
        commands |= {command for command in processes("cmdline", 0) if KEY in command}
        with suppress(subprocess.TimeoutExpired):
            running.wait(0.5)
    assert running.stdout is not None
    said = running.stdout.read()
    assert running.returncode == 0, said
    return said, tasks, commands


def places(program: Program, engine: str) -> dict[str, str]:
    """Everything that is kept of the cluster, and may be read by others than its tasks."""
    cluster: Any = program.registered()[0]["cluster"]
    services = [service_name(cluster, hostname) for hostname in TASKS]
    files = [path for path in program.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {
        "files": "".join(path.read_bytes().decode(errors="replace") for path in files),
        "outputs": program.call("stack", "output", "--json", "--show-secrets", "--stack", program.stack).output,
        "state": program.call("stack", "export", "--stack", program.stack).output,
        "services": docker(engine, "service", "inspect", *services),
        "logs": "".join(docker(engine, "service", "logs", "--raw", name) for name in services),
    }


@pytest.mark.full
def test_checkpoints_are_written_to_a_bucket_and_the_key_is_in_the_tasks_alone(
    on_docker: Callable[[str, str], Program], engine: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(ROOT / "programs/mnist/train/digits.npz", data / "mnist.npz")
    data.chmod(0o755)
    program = on_docker("dcos_mnist", published.image(engine, "hdfs"))
    program.set("data_dir", str(data))
    steps = {"num_training_steps": 100, "seconds_per_step": 0.05}
    job = {
        "shared_filesystem": f"s3://{BUCKET}/jobs",
        "virtual_network": False,  # moto listens on the machine's loopback
        "job_context": steps,
    }
    program.set("options", json.dumps({"service": job, "worker": {"count": 1}}))
    with store(prefix="") as bucket:
        program.configure(env={"S3_ENDPOINT": bucket.endpoint, "AWS_REGION": REGION})
        for name, value in (("AWS_ACCESS_KEY_ID", "of-the-tests"), ("AWS_SECRET_ACCESS_KEY", KEY)):
            program.set(f"tfdeploy:secrets.{name}", value, "--secret", "--path")
        said, tasks, commands = run_and_watch(program)
        assert (sorted(tasks), commands) == (TASKS, set())
        found = {"pulumi up": said, **places(program, engine)}
        assert [place for place, text in found.items() if KEY in text] == []
        assert all(found[place] for place in ("files", "outputs", "state", "services"))

        outputs = program.outputs()
        assert (outputs["state"], outputs["accuracy"] > 0.8) == ("succeeded", True), outputs["logs"]
        kept = bucket.objects()
        assert {Path(key).suffix for key in kept} >= {".index", ".meta"}
        assert all(key.startswith("jobs/") for key in kept)
        program.destroy()
        assert kept.keys() == bucket.objects().keys()
