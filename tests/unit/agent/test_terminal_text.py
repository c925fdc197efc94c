"""What is shown of a line: to people, and to patterns."""

from pathlib import Path

import pytest

from tests.unit.cases import plan
from tests.unit.printing import write
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.reading import reading
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.terminal_text import plain

VALUE = "accuracy: 0.97"
SHOWN = [
    VALUE,
    "accuracy: \x1b[1m0.97\x1b[0m",
    f"\x1b]8;;http://example.org/0.11\x1b\\{VALUE}\x1b]8;;\x1b\\",
    f"\x1bPaccuracy: 0.11\x1b\\{VALUE}",
    f"\x9b1m{VALUE}\x9bm",
    f"\x1b(B\x1b[m{VALUE}",
    f"accuracy: 0.11\r{VALUE}",
    f"accuracy: 0.11\r\x1b[K{VALUE}\r\n",
    f"accuracy: 0.11\x1b[2K\x1b[1G{VALUE}",
    f"accuracy: 0.11\x1b[G{VALUE}",
    f"\x1b[32maccuracy: 0.11\x1b[0m\r\x1b[32m{VALUE}\x1b[0m\r\x1b[?25h",
    f"{VALUE}\r\x1b[0m",
    "accuracy: 0.11\b\b97",
    "accur\x00acy: 0.97",
    f"\u202a{VALUE}\u202c",
]


@pytest.mark.parametrize(
    "printed", [f"{VALUE}\r\x1b[K", f"{VALUE}\r\x1b[2K", f"{VALUE}\x1b[2K", f"{VALUE}\r   \r\x1b[K"]
)
def test_what_was_erased_is_not_shown(printed: str) -> None:
    assert plain(printed) == ""


@pytest.mark.parametrize(
    ("printed", "shown"), [("a\x00b\x08c\td", "ac\td"), ("\x1b]never ended", ""), ("\udcff", "\ufffd")]
)
def test_what_no_terminal_shows_is_left_out(printed: str, shown: str) -> None:
    assert plain(printed) == shown


@pytest.mark.parametrize("printed", SHOWN)
@pytest.mark.parametrize("has_ended", [True, False])
def test_a_metric_is_read_as_it_is_shown(tmp_path: Path, printed: str, has_ended: bool) -> None:
    assert plain(printed) == VALUE
    record, run = Record(tmp_path), RunState(plan(workers=1).run, 1.0)
    end = "\n" if has_ended else ""
    write(record.log(run.spec.id, "worker-0"), [(STDOUT, (printed.rstrip("\r\n") + end).encode())])
    assert record.search(run, {"accuracy": r"^accuracy: (\S+)$"}).metrics == {"accuracy": "0.97"}


@pytest.mark.parametrize(
    ("printed", "step", "goal"),
    [
        ("\x1b[1mstep\x1b[0m 120/2000", 120, 2000),
        ("step 7 of 9\rstep \x1b[1m120\x1b[0m of 2000", 120, 2000),
        ("\x1b[34mglobal_step\x1b[0m = \x1b[1m120\x1b[0m", 120, None),
    ],
)
def test_progress_is_read_as_it_is_shown(tmp_path: Path, printed: str, step: int, goal: int | None) -> None:
    assert (reading(printed).step, reading(printed).goal) == (step, goal)
    record, run = Record(tmp_path), RunState(plan(workers=1).run, 1.0)
    write(record.log(run.spec.id, "worker-0"), [(STDOUT, f"{printed}\naccuracy: 0.5\n".encode())])
    found = record.search(run, {"accuracy": r"accuracy: (\S+)"})
    assert found.values["accuracy"].step == step
    assert (found.progress["worker-0"].step, found.progress["worker-0"].goal) == (step, goal)
