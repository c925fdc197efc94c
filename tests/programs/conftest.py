"""The repository's own programs, each in a copy with a state of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.programs.program import Program


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
