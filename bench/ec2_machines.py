"""Machines on EC2 in a box: the part of `up` that is ours, when they are many, against that of one."""

import datetime
import itertools
import re
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.box.cloud import Box
from tests.engine.cli import docker
from tests.engine.images import python_image
from tfdeploy.backends.docker.engine.engine import engine_address
from tfdeploy.backends.ec2.machine.user_data import READY

from .needs import image_of
from .on_ec2 import ec2_project
from .pairs import by_turns, log
from .processes import BenchError
from .table import Row, ratio

MACHINES = 8

_PAIRS = 5
_RUN = re.compile(r"dynamic/tfdeploy:Run test-run created \((\d+(?:\.\d+)?)s\)")
"""The run is given as soon as the controller's image has come; on this computer all machines unpack theirs on the same cores."""

_FOREVER = "import time\ntime.sleep(1000000)\n"


def run() -> list[Row]:
    """Everything again in each measurement, machines too; they share this computer's cores."""
    python, outer = image_of(python_image), engine_address("")
    number = itertools.count()
    with tempfile.TemporaryDirectory(prefix="tfdeploy-bench-") as folder, Box(outer) as box:
        image = box.push(python)

        def ours(machines: int) -> float:
            with ec2_project(Path(folder) / str(next(number)), box, image, machines, _FOREVER) as project:
                begun = time.monotonic()
                output = project.up().output
                total = time.monotonic() - begun
                boot = _boot(outer, [project.machine(f"test-m{index}").id for index in range(machines)])
            images = float(_RUN.findall(output)[-1])
            rest = total - boot - images
            log(
                f"{machines} machines: up {total:.1f} s: boot {boot:.1f} s, images {images:.1f} s, the rest {rest:.1f} s"
            )
            return rest

        mine, single = by_turns(_PAIRS, f"{MACHINES} machines", partial(ours, MACHINES), partial(ours, 1))
    return [ratio(f"`up` on EC2 in a box without boot and images: {MACHINES} machines against 1", mine, single, 1.3)]


def _boot(outer: str, instances: list[str]) -> float:
    """Seconds from the first machine's start until all have printed that they are ready."""
    times = [_times(outer, name) for name in instances]
    return max(ready for _, ready in times) - min(start for start, _ in times)


def _times(outer: str, instance: str) -> tuple[float, float]:
    name = docker(outer, "ps", "--filter", f"name={instance}", "--format", "{{.Names}}").strip()
    started = docker(outer, "inspect", "--format", "{{.State.StartedAt}}", name)
    printed = [line for line in docker(outer, "logs", "--timestamps", name).splitlines() if READY in line]
    if not printed:
        raise BenchError(f"{instance} has not printed that it is ready")
    return _moment(started), _moment(printed[-1].split()[0])


def _moment(text: str) -> float:
    """A time as Docker writes it, with nine digits of a second, in seconds since 1970."""
    whole, _, part = text.strip().rstrip("Z").partition(".")
    at = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.UTC)
    return at.timestamp() + float(f"0.{part or 0}")
