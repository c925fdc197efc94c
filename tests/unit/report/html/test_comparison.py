"""The page about two runs: both curves in one picture, the differences as tables, and nothing that is more than text."""

from dataclasses import replace

import pytest

from tests.unit.report.html.test_document import NASTY, Outline
from tests.unit.report.test_run_history import finished, stored
from tfdeploy.receipts import Receipt
from tfdeploy.report.html import comparison
from tfdeploy.report.html.comparison import comparison_page, overlaid
from tfdeploy.report.html.document import policy
from tfdeploy.report.log_metrics import EPOCH, STEP, Curve
from tfdeploy.report.run_diff import FileChange, RunDiff

LOSS = [(10.0, 0.9), (20.0, 0.5)]


def difference(text: str = "0.1", lines: int = 1) -> RunDiff:
    """Two runs with another learning rate, which is `text` in the newer one."""
    options = [Receipt({"workers": "2", "lr": value, value: ""}, {}, {"c7i.large": 1}) for value in ("1", text)]
    runs = [stored(finished(1_000.0 * place), receipt=options[place - 1], folder="/record") for place in (1, 2)]
    return RunDiff(runs[0], runs[1], [FileChange(f"{text}.py", [f"+{text}"] * lines)])


def made(text: str = "0.1") -> str:
    curves = [{text: Curve(STEP, {"worker-0": LOSS})}, {text: Curve(STEP, {"worker-0": LOSS})}]
    return comparison_page(difference(text), curves[0], curves[1], 9_000.0)


def test_the_page_is_well_formed_needs_nothing_else_and_has_no_script() -> None:
    found = Outline(made())
    assert found.open == []
    assert len(found.ids()) == len(set(found.ids()))
    assert {"runs", "changes", "curves", "code"} <= set(found.ids())
    assert not {"script", "img", "iframe", "form", "object", "base"} & found.names()
    assert policy() in [values.get("content") for name, values in found.found if name == "meta"]
    assert all("style" not in values and not any(key.startswith("on") for key in values) for _, values in found.found)


@pytest.mark.parametrize("text", NASTY)
def test_no_text_of_a_run_becomes_markup(text: str) -> None:
    plain = Outline(made("x"))
    assert Outline(made(text)).names() == plain.names()
    assert Outline(made(text)).open == []


def test_the_differences_are_tables() -> None:
    page = made("0.2")
    assert '<td class="c-older">1</td><td class="c-newer">0.2</td>' in page
    assert "c7i.large" not in page, "both runs have it"
    assert "Versions" not in page


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


def test_a_run_without_a_record_is_named() -> None:
    shown = difference()
    newer = replace(shown.newer, folder="")
    page = comparison_page(replace(shown, newer=newer, code=None), {}, {}, 9_000.0)
    assert f"The record of {newer.spec.id} is gone, and its curves with it." in page
    assert "so it is not compared" in page


def test_long_code_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MAX_CODE_LINES", 3)
    assert "further" not in comparison_page(difference(lines=3), {}, {}, 9_000.0)
    page = comparison_page(difference(lines=5), {}, {}, 9_000.0)
    assert page.count("+0.1") == 3
    assert "2 further lines of the diff: `tfdeploy diff` prints them." in page
