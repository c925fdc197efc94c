"""Which command a run of pytest belongs to. `make test` leaves out the tests with the marker `full`, which `make test-rest` runs."""

import os
from typing import NamedTuple

import pytest

from tests.engine.fixtures import WITHOUT

COMMANDS = {"not full": "test", "full": "rest", "": "all"}
"""The marker expression of a run of all test paths, to the name of the run in `pyproject.toml` and in the names of its files."""

SELECTING = ("keyword", "deselect", "ignore", "ignore_glob", "lf", "stepwise", "collectonly")
"""Options by which pytest leaves tests out, under the names that it keeps them by."""


class Run(NamedTuple):
    """A run of pytest."""

    name: str
    """`test`, `rest`, `all`, or `some` for tests that somebody has chosen."""

    left_out_by: tuple[str, ...] = ()
    """The options and variables that leave tests out of a run of all test paths."""


def run_of(config: pytest.Config) -> Run:
    """Which run this is. The processes of a run have their tests named, so only the process that starts them knows."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return Run("some")
    left_out_by = [name for name in SELECTING if config.getoption(name, None)]
    left_out_by += [name for name in (WITHOUT,) if os.environ.get(name)]
    name = COMMANDS.get(config.getoption("markexpr", ""))
    return Run(name or "some", (*left_out_by, *(() if name else ("markexpr",))))
