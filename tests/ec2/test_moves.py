"""One run that moves from this machine to containers, to machines of EC2 and back, and is killed once on each."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.box.cloud import Box
from tests.ec2.project import Ec2Project
from tests.engine.cli import docker
from tests.integration.conftest import Project
from tests.integration.moving import ARGUMENTS, Moving, assert_continuous, continued_at
from tests.verbs import Verbs
from tests.waiting import until

pytestmark = pytest.mark.full

KILLS = """\
import os, pathlib
mine = "TFDEPLOY_TRAIN_DIR=" + os.environ["TFDEPLOY_TRAIN_DIR"]
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        is_program = b"train.py" in (folder / "cmdline").read_bytes().split(b"\\0")
        variables = (folder / "environ").read_text().split("\\0")
    except OSError:
        continue
    if is_program and mine in variables:
        os.kill(int(folder.name), 9)
"""
"""Kills the program of the task in which it is executed."""

WRITES = """\
import hashlib, os
content = os.urandom(5_000_000)
with open("/tmp/copied", "wb") as file:
    file.write(content)
print(hashlib.sha256(content).hexdigest())
"""
"""Writes a file, and prints its hash."""


class TravellingProject(Moving, Ec2Project):
    """A project whose backend is in the configuration; its image is the same everywhere."""

    def write(self, arguments: str, *rest: str) -> None:
        groups = {
            "container": {"image": self.image},
            "docker": {"cleanup_image": self.image},
            "ec2": {
                "instance_type": "m7i.large",
                "ssh_public_key": f"{self.key}.pub",
                "ssh_cidrs": ["127.0.0.0/8"],
                "efs": self.efs,
                "retain_record": False,
            },
        }
        Project.write(self, ", ".join([*(f"{name}={value!r}" for name, value in groups.items()), arguments]), *rest)

    def copies_a_file(self) -> None:
        """`tfdeploy cp` brings a file of the worker's machine as it is there."""
        digest = self.tfdeploy("exec", "--cluster", "test", "worker-0", "--", "python", "-c", WRITES).strip()
        code, copied, err = Verbs(self.program, self.env).call("cp", "--cluster", "test", "worker-0:/tmp/copied", "-")
        assert code == 0, err
        assert hashlib.sha256(copied).hexdigest() == digest

    def starts(self, backend: str) -> int:
        """How often the program was started, on all backends."""
        return len(continued_at(self.lines_at(backend)))

    def kill_program(self, backend: str) -> None:
        """Kill the program of the worker, and wait until it trains again."""
        before = self.starts(backend)
        self.tfdeploy("exec", "--cluster", "test", "worker-0", "--", "python", "-c", KILLS)
        until(lambda: (self.shown(), self.starts(backend))[1] > before, f"the program was started again on {backend}")
        self.trains_on(backend)


@pytest.fixture
def travelling(
    box: Box, engine: str, python_image: str, box_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TravellingProject]:
    folder = tmp_path / "project"
    for name, value in {**box.environment, "XDG_STATE_HOME": str(folder / "state")}.items():
        monkeypatch.setenv(name, value)
    docker(engine, "tag", python_image, box_image)  # by the name that the machines know
    project = TravellingProject(folder, box, box_image)
    yield project
    project.clean()
    docker(engine, "rmi", box_image)


def test_a_run_travels_to_ec2_by_way_of_containers_and_back(travelling: TravellingProject) -> None:
    travelling.begin_on("local", ARGUMENTS)
    first = travelling.run_at("local").spec.id
    for backend, former in (("local", ""), ("docker", "local"), ("ec2", "docker"), ("local", "ec2")):
        if former:
            travelling.move_to(backend)
            assert not travelling.has_place(former), f"nothing is left on {former}"
        travelling.trains_on(backend)
        travelling.kill_program(backend)
        if backend == "ec2":
            travelling.copies_a_file()
        assert_continuous(travelling.lines_at(backend))
    assert travelling.run_at("local").spec.id == first
    assert travelling.starts("local") == 4 + 4, "once on each arrival, and once after each kill"
    assert [run["run"] for run in travelling.listed("runs")] == [first]
    travelling.assert_nothing_left()
    print("\n".join(event["sentence"] for event in travelling.listed("events")))
    travelling.destroy()
