"""What users read, a file for each surface: `make snapshots` writes them again, and the diff is reviewed as text."""

from collections.abc import Callable

import pytest

from tests.unit.snapshots import check_snapshot
from tests.unit.snapshots.diagnosis import diagnosis
from tests.unit.snapshots.errors import errors
from tests.unit.snapshots.events import events
from tests.unit.snapshots.preview import preview
from tests.unit.snapshots.tables import tables
from tfdeploy.cli.command_table import overview


@pytest.mark.parametrize(
    ("surface", "render"),
    [
        ("errors", errors),
        ("preview", preview),
        ("events", events),
        ("diagnosis", diagnosis),
        ("tables", tables),
        ("commands", overview),
    ],
)
def test_a_surface_reads_as_reviewed(surface: str, render: Callable[[], str]) -> None:
    check_snapshot(surface, render())
