"""How fast and how far a run is, from its stored output."""

from pathlib import Path

import pytest

from tests.unit.printing import write
from tests.unit.report.test_run_history import finished
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.report.stored_progress import first_progress, stored_progress


@pytest.mark.parametrize(("seconds", "rate"), [(0, None), (5, 10.0)])
def test_the_speed_of_a_record(seconds: int, rate: float | None, tmp_path: Path) -> None:
    record, state = Record(tmp_path), finished(1_000.0)
    record.save(state)
    steps = [(STDOUT, f"step {10 * second} loss 0.5\n".encode()) for second in range(seconds)]
    write(record.log(state.spec.id, "worker-0"), steps, begin=1_000.0)
    assert first_progress(stored_progress(record, state)).rate == rate
