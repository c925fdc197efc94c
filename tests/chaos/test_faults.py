"""Faults that need an engine do what they say, and end."""

from pathlib import Path
from secrets import token_hex

import psutil
import pytest

from tests.chaos.box import slow_pull
from tests.chaos.cluster import Story
from tests.chaos.record_disk import RECORD, RecordDisk
from tests.chaos.schedule import Step
from tests.engine.cli import LABEL, DockerFailed, docker
from tests.engine.nested import nested
from tests.engine.registry import registry
from tests.waiting import until

pytestmark = pytest.mark.full

WRITE = f"import os; open('{RECORD}/more', 'wb').write(bytes(20_000)); os.unlink('{RECORD}/more')"
FOREVER = "import time; time.sleep(100_000)"


def test_a_controller_comes_back_to_its_record_on_a_full_disk(engine: str, python_image: str) -> None:
    name = f"test-{token_hex(3)}-record"

    def inside(program: str) -> str:
        own = ("ps", "--quiet", "--filter", f"volume={name}", "--filter", f"label=com.docker.swarm.service.name={name}")
        container = until(lambda: docker(engine, *own), "the service runs")
        return docker(engine, "exec", container, "python3", "-c", program)

    def is_full() -> bool:
        try:
            inside(WRITE)
        except DockerFailed as error:
            if "No space left" not in str(error):
                raise
            return True
        return False

    disk = RecordDisk(lambda *arguments: docker(engine, *arguments), python_image, name, name)
    docker(engine, "volume", "create", f"--label={LABEL}=chaos", name)
    mount = f"--mount=type=volume,source={name},target={RECORD}"
    command = (python_image, "python3", "-c", FOREVER)
    docker(engine, "service", "create", "--detach", f"--label={LABEL}", "--name", name, mount, *command)
    try:
        inside(f"open('{RECORD}/kept', 'w').write('kept')")
        disk.place(4096)
        assert inside(f"print(open('{RECORD}/kept').read())") == "kept"
        assert docker(engine, "volume", "inspect", "--format", f'{{{{index .Labels "{LABEL}"}}}}', name) == "chaos"
        assert is_full()
        disk.free()
        until(lambda: not is_full(), "the disk has space")
        disk.fill()
        until(is_full, "the disk is full again")
    finally:
        disk.release()
        docker(engine, "service", "rm", name)
        until(
            lambda: not docker(engine, "ps", "--all", "--quiet", "--filter", f"volume={name}"), "the containers ended"
        )
        docker(engine, "volume", "rm", name)


def test_an_engine_that_is_killed_starts_again(engine: str) -> None:
    with nested(engine, ("m0",)) as machines:
        container = machines.machines["m0"].container
        before = docker(engine, "exec", container, "pgrep", "--exact", "dockerd")
        machines.kill_engine("m0")
        machines.machines["m0"].wait()
        machines.wait("m0")
        assert docker(engine, "exec", container, "pgrep", "--exact", "dockerd") != before


def test_a_registry_hangs_and_goes_on(tmp_path: Path, engine: str) -> None:
    class Cluster:
        story = Story()

    others = {child.pid for child in psutil.Process().children()}  # the box of other tests may have a registry
    with registry() as found:
        children = [child for child in psutil.Process().children() if child.pid not in others]
        (process,) = (child for child in children if child.name() == "docker-registry")
        assert slow_pull(Cluster, Step("slow_pull", 0.5, seconds=60), None)  # type: ignore[arg-type]
        until(lambda: process.status() == psutil.STATUS_STOPPED, "it is suspended")
        for heal in reversed(Cluster.story.heals):
            heal()
        assert found.answers()
