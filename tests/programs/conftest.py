"""The repository's own programs, each in a copy with a state of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex

import pytest

from tests.programs.program import Program
from tfdeploy.backends.docker.backend import BACKEND


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Callable[[str], Program]]:
    """Makes a program of `programs/` by the name of its folder; what is left of it in the end is taken away."""
    made: list[Program] = []

    def make(name: str) -> Program:
        made.append(Program(tmp_path / f"{name}-{len(made)}", name))
        return made[-1]

    yield make
    for program in made:
        program.clean()


@pytest.fixture
def on_docker(
    programs: Callable[[str], Program], engine: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], Program]]:
    """Makes a program by the name of its folder, set to a real engine and this image."""
    made: list[Program] = []

    def make(name: str, image: str) -> Program:
        program = programs(name)
        program.env["DOCKER_HOST"] = engine
        monkeypatch.setenv("XDG_STATE_HOME", program.env["XDG_STATE_HOME"])
        # Others may use the engine too: what stands on it has a name of its own.
        program.stack = f"test-{token_hex(3)}"
        program.init()
        program.configure(backend="docker", container={"image": image, "retain_volumes": False})
        made.append(program)
        return program

    yield make
    for program in made:
        for entry in program.registered():
            if not entry["ended"]:
                BACKEND.runner.delete_all(entry["cluster"], "", {"volumes": False, "record": False})
