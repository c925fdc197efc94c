"""From the time that a program prints, on a machine of EC2 in a box or in a pod, until `tfdeploy logs --follow` has printed it here.

Its output is read every 10 ms. All share this computer's clock and cores. 200 lines, from the first one that was printed after the
command has printed a line.
"""

import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from tests.box.cloud import Box
from tests.ec2.project import Ec2Project
from tests.engine.images import PYTHON, python_image
from tests.kube import plane
from tests.kube.cluster import cluster
from tests.kube.images import archive
from tests.kube.programs import kube
from tfdeploy.backends.docker.engine.engine import engine_address

from .ending import undisturbed
from .engine import CLUSTER, TASKS, UP, project, workplace
from .needs import image_of
from .pairs import log
from .processes import Process, until
from .table import Row, limit

_LINES = 200
_TARGET = 1.0
_COMMAND = ("tfdeploy", "logs", "worker-0", "--follow")


def run() -> list[Row]:
    """Both limits."""
    measure = "a line that is printed {}, to `tfdeploy logs --follow` (worst of the lines)"
    return [
        limit(measure.format("on a machine of EC2 in a box"), _on_ec2(), _TARGET, " s"),
        limit(measure.format("in a pod"), _in_a_pod(), _TARGET, " s"),
    ]


def _on_ec2() -> list[float]:
    python = image_of(python_image)
    job = 'command=["python", "train.py"], code="code", workers=1, ec2={"machine_count": 1}, wait="0"'
    with tempfile.TemporaryDirectory(prefix="tfdeploy-bench-") as folder, Box(engine_address("")) as box:
        made = Ec2Project(Path(folder) / "project", box, box.push(python))
        with patch.dict(os.environ, {**box.environment, "XDG_STATE_HOME": str(Path(folder, "state"))}):
            try:
                made.write(job, (TASKS / "clock.py").read_text())
                made.init()
                made.up()
                latencies = _latencies("EC2", made.program, made.env)
                made.destroy()
            finally:
                made.clean()
    return latencies


def _in_a_pod() -> list[float]:
    config = {
        "tfdeploy:backend": "kubernetes",
        "tfdeploy:kubernetes": {"storage_class": plane.STORAGE_CLASS},
        "tfdeploy:container": {"image": PYTHON, "retain_volumes": False},
        "tfdeploy:workers": 1,
        "tfdeploy:command": ["python", "clock.py"],
        "tfdeploy:wait": "0",
    }
    with workplace() as place, ExitStack() as stack:
        with undisturbed():
            kubernetes = stack.enter_context(cluster(kube(), archive()))
        place.environment["KUBECONFIG"] = str(kubernetes.kubeconfig)
        with project(place, CLUSTER, "follow", config) as made:
            made.ship("clock.py")
            made.pulumi(*UP)
            return _latencies("pod", made.folder, made.environment)


def _latencies(where: str, folder: Path, environment: Mapping[str, str]) -> list[float]:
    """For each line that is printed after the first one has come, the seconds until the command has printed it."""
    call = Process(_COMMAND, folder / "followed", folder, environment)
    try:
        until(lambda: "\n" in call.output(), "a first line", call)
        begun, taken = time.monotonic(), 0
        latencies: list[float] = []

        def take() -> bool:
            nonlocal taken
            lines = call.output().split("\n")[:-1]
            now = time.monotonic()
            printed = [float(line.rpartition(" ")[2]) for line in lines[taken:]]
            taken = len(lines)
            latencies.extend(now - at for at in printed if at > begun)
            return len(latencies) >= _LINES

        until(take, "the lines", call)
    finally:
        call.kill()
    log(f"line to `logs --follow`, {where}: {max(latencies):.3f} s at worst")
    return latencies[:_LINES]
