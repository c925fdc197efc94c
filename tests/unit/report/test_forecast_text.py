"""The forecast as the line of a preview."""

from dataclasses import replace

import pytest

from tests.unit.report.test_forecast import run
from tfdeploy.receipts import RunOutcome
from tfdeploy.report.forecast import Forecast, forecast_line

WENT = RunOutcome(0.0, 842.0, "succeeded", metrics={"accuracy": "0.956"}, cost=0.08, is_final=True)


def line(outcome: RunOutcome = WENT, changed: tuple[str, ...] = ("code",), expected: Forecast | None = None) -> str:
    return forecast_line(replace(run(), outcome=outcome), changed, expected)


def test_all_that_is_known_is_one_line() -> None:
    assert line(expected=Forecast(780.0, 960.0, None, (0.0714, 0.0878))) == (
        "last run: accuracy 0.956 after 14 min, $0.08; this change: code only; expected 13 to 16 min, $0.071 to 0.088"
    )


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (replace(WENT, cost=None), "accuracy 0.956 after 14 min"),
        (replace(WENT, metrics={}), "succeeded after 14 min, $0.08"),
        (replace(WENT, metrics={"model": "/train/export", "loss": None}), "succeeded after 14 min, $0.08"),
        (replace(WENT, metrics={"a": "1", "b": "2", "c": "3", "d": "4"}), "a 1, b 2, c 3 after 14 min, $0.08"),
        (replace(WENT, result="failed"), "failed after 14 min, $0.08"),
        (replace(WENT, result="stopped", cost=1.5), "stopped after 14 min, $1.50"),
        (RunOutcome(0.0, None, "running"), "still running"),
    ],
)
def test_the_last_run_is_named_by_its_metrics_or_its_result(last: RunOutcome, text: str) -> None:
    assert line(last) == f"last run: {text}; this change: code only"


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ((), ""),
        (("command", "code"), "; this change: command, code"),
        (("a", "b", "c", "d", "e", "f"), "; this change: a, b, c, d, 2 more"),
    ],
)
def test_few_changes_are_named(changed: tuple[str, ...], text: str) -> None:
    assert line(replace(WENT, cost=None), changed) == f"last run: accuracy 0.956 after 14 min{text}"


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (Forecast(4.5, 6.1), "4.5 to 6.1 s"),
        (Forecast(99.0, 122.0), "99 to 122 s"),
        (Forecast(120.0, 144.0), "2.0 to 2.4 min"),
        (Forecast(18360.0, 21960.0), "5.1 to 6.1 h"),
        (Forecast(99.0, 122.0, 1200.0), "99 to 122 s for 1200 steps"),
        (Forecast(780.0, 960.0, None, (12.34, 15.17)), "13 to 16 min, $12.00 to 15.00"),
        (Forecast(780.0, 960.0, None, (0.0, 0.0)), "13 to 16 min, $0.00"),
    ],
)
def test_the_range_is_in_one_unit(expected: Forecast, text: str) -> None:
    assert line(expected=expected).rpartition("; expected ")[2] == text
