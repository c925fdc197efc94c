"""The tests' emulation of EC2, and a stack in it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.box.cloud import Box
from tests.ec2.project import Ec2Project


@contextmanager
def ec2_project(folder: Path, box: Box, image: str, machines: int, program: str) -> Iterator[Ec2Project]:
    """A project whose cluster has a worker on each machine, before its first update; it is destroyed afterwards."""
    before = dict(os.environ)
    os.environ.update({**box.environment, "XDG_STATE_HOME": str(folder / "state")})
    project = Ec2Project(folder, box, image)
    try:
        job = f'command=["python", "train.py"], code="code", workers={machines}, ec2={{"machine_count": {machines}}}, wait="0"'
        project.write(job, program)
        project.init()
        yield project
        project.destroy()
    finally:
        project.clean()
        os.environ.clear()
        os.environ.update(before)
