"""The progress of a task as one line."""

from tfdeploy.cli.commands.status import progress_line
from tfdeploy.report.progress import Progress


def test_a_million_steps_are_written_without_an_exponent() -> None:
    assert " 1000000/2000000 50%" in progress_line(Progress(step=1_000_000.0, goal=2_000_000.0), running=False)
