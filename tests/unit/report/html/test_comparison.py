"""The page about two runs: both curves in one picture, the differences as tables, and nothing that is more than text."""

from dataclasses import replace

import pytest

from tests.unit.report.html.test_document import NASTY, Outline
from tests.unit.report.test_run_history import finished, stored
from tfdeploy.report.html.comparison import comparison_page, overlaid
from tfdeploy.report.log_curves import EPOCH, STEP, Curve
from tfdeploy.report.run_diff import RunDiff

LOSS = [(10.0, 0.9), (20.0, 0.5)]


def made(text: str) -> str:
    """The page about two runs with another command, which has `text` in the newer one."""
    run, curves = stored(finished(1_000.0)), {text: Curve(STEP, {"worker-0": LOSS})}
    specs = [replace(run.spec, command=["train", value]) for value in ("1", text)]
    older, newer = (replace(run, state=replace(run.state, spec=spec)) for spec in specs)
    return comparison_page(RunDiff(older, newer), curves, curves, 9_000.0)


@pytest.mark.parametrize("text", NASTY)
def test_no_text_of_a_run_becomes_markup(text: str) -> None:
    plain = Outline(made("x"))
    assert Outline(made(text)).names() == plain.names()
    assert Outline(made(text)).open == []


def test_the_differences_are_tables() -> None:
    page = made("0.2")
    assert '<td class="c-older">train 1</td><td class="c-newer">train 0.2</td>' in page
    assert "Tasks" not in page, "both runs have the same"


def test_curves_with_the_same_axis_are_in_one_picture() -> None:
    both = overlaid(
        {"loss": Curve(STEP, {"worker-1": LOSS, "worker-0": LOSS}), "accuracy": Curve(STEP, {"evaluator-0": LOSS})},
        {"loss": Curve(STEP, {"chief-0": LOSS}), "accuracy": Curve(EPOCH, {"worker-0": LOSS})},
    )
    assert {title: (curve.by, list(curve.series)) for title, curve in both.items()} == {
        "loss": (STEP, ["older: worker-0", "newer: chief-0"]),
        "accuracy, older run": (STEP, ["older: evaluator-0"]),
        "accuracy, newer run": (EPOCH, ["newer: worker-0"]),
    }
    assert overlaid({"loss": Curve(STEP, {"worker-0": LOSS[:1]})}, {}) == {}
