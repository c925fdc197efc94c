"""Rows of the tables as the product builds them: a test names the columns that it is about, and no others."""

from typing import Any

from tests.unit.report.test_report import read, sight, world
from tfdeploy.outputs import MachineRow, TaskRow


def task_row(**columns: Any) -> TaskRow:
    """The row of worker-0, which runs since noon, with these columns instead of its own."""
    assert {*columns} <= {*TaskRow.__annotations__}
    row = read(sight(world())).tasks[1]
    return {**row, **columns}  # type: ignore[typeddict-item]


def machine_row(**columns: Any) -> MachineRow:
    """The row of its machine, likewise."""
    assert {*columns} <= {*MachineRow.__annotations__}
    row = read(sight(world())).machines[0]
    return {**row, **columns}  # type: ignore[typeddict-item]
