"""One form of numbers for outputs and conditions, and no number from a torn line."""

from pathlib import Path

import pytest

from tests.unit.cases import plan
from tests.unit.printing import write
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.metric_values import number_in
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.pattern_process import search
from tfdeploy.agent.record.reading import reading
from tfdeploy.agent.record.record import Record
from tfdeploy.errors import SpecError
from tfdeploy.report.report import metric_value

NUMBERS = {
    "0.97": 0.97,
    "-3": -3.0,
    "+1": 1.0,
    "1.": 1.0,
    ".5": 0.5,
    "1e-3": 0.001,
    "2.5E+10": 2.5e10,
    " 0.5\t": 0.5,
    "007": 7.0,
}
OTHERS = [
    "1_0",
    "1e1_0",
    "\uff11\uff12",
    "1\u0663",
    " inf",
    "nan",
    "1e999",
    "0,97",
    "1e",
    ".",
    "",
]


@pytest.mark.parametrize(("text", "number"), NUMBERS.items())
def test_a_number_is_one_for_outputs_and_conditions(text: str, number: float) -> None:
    assert number_in(text) == metric_value(text) == number
    assert plan(workers=1, metrics={"m": "x"}, until={"m": f">= {text}"}).run.until[0].threshold == number


@pytest.mark.parametrize("text", OTHERS)
def test_what_only_python_takes_for_a_number_is_none(text: str) -> None:
    assert number_in(text) is None
    assert isinstance(metric_value(text), str)
    with pytest.raises(SpecError, match="is not a comparison with a number"):
        plan(workers=1, metrics={"m": "x"}, until={"m": f">= {text}"})


@pytest.mark.parametrize("text", ["1\n", "\u20091", "1\xa0"])
def test_only_spaces_and_tabs_may_surround_a_number(text: str) -> None:
    assert number_in(text) is None


def test_other_digits_are_no_steps_and_no_values() -> None:
    assert reading("step \uff11\uff12").step is None
    assert reading("step 5 loss \uff11\uff12").values == {}


@pytest.mark.parametrize(
    "pattern", [r"loss: (\S+)", r"loss: ([\d.]+)", r"loss: (\d+\.\d+)", r"loss: [-\d.eE+]+", r"(\d+\.\d+)"]
)
@pytest.mark.parametrize(
    ("torn", "word", "number"),
    [
        ("loss: 2.84644152.5334997", "2.75", "2.75"),
        ("loss: 0.970.98", "2.75", "2.75"),
        ("loss: 2.8.5", "2.75", "2.75"),
        ("loss: 1.5e-31.2e-3", "2.75", "2.75"),
        ("loss: 12.7loss: 0.970.98", "12.7loss:", "12.7"),
    ],
)
def test_a_torn_number_is_not_taken(tmp_path: Path, pattern: str, torn: str, word: str, number: str) -> None:
    record, run = Record(tmp_path), RunState(plan(workers=1).run, 1.0)
    write(record.log(run.spec.id, "worker-0"), [(STDOUT, f"loss: 2.75\n{torn}\n".encode())])
    value = record.search(run, {"loss": pattern}).metrics["loss"].removeprefix("loss: ")
    assert value == (word if r"\S" in pattern else number)


@pytest.mark.parametrize(
    ("pattern", "line", "value"),
    [
        (r"loss: (\S+)", "loss: 2.75.", "2.75."),
        (r"loss: ([\d.]+)", "loss: 2.75...", "2.75..."),
        (r"loss: (\d\.\d\d)", "loss: 2.7512", "2.75"),
        (r"loss: (\d+)", "loss: 2.7512", "2"),
        (r"loss (\S+)", "10.0.0.1:2222 v1.2.3 loss 0.5 at 1.2.3", "0.5"),
        (r"loss (\S+),", "loss 0.5, acc 0.9", "0.5"),
        (r"best: (\S+)", "best: model-1.2.3.keras", "model-1.2.3.keras"),
        (r"epoch \d+", "epoch 3", "epoch 3"),
        (r"(x)?loss", "1.2.3 loss", ""),
        (r"loss=(\S+)", "loss=1.5 loss=2.5 loss=2.5.1", "2.5"),
    ],
)
def test_what_is_whole_is_taken(pattern: str, line: str, value: str) -> None:
    assert search({"m": pattern}, [line]).last == {"m": (0, value)}
