"""The score of forecasts over the recorded runs, and its place in the page of benchmarks."""

import json
from pathlib import Path

from bench import forecast
from bench.forecast import LEAST, MOST, Score, Scored, left_out_score, score, section
from tfdeploy.report.forecast import WIDEST, Forecast

PAGE = Path(__file__).parents[3] / "docs" / "benchmarks.md"


def test_the_data_are_runs_of_several_programs_without_paths_of_a_computer() -> None:
    clusters = json.loads(forecast.DATA.read_text())
    assert len({cluster["program"] for cluster in clusters}) >= 4
    assert sum(len(cluster["receipts"]) for cluster in clusters) >= 30
    for name in ("/home/", "/root/", "/tmp/", "/work/"):
        assert name not in forecast.DATA.read_text()


def test_ranges_are_as_often_right_as_they_should_be_and_none_is_wide() -> None:
    total = score()
    assert len(total.made) >= 30
    assert LEAST <= total.percentage <= MOST
    assert total.widths[-1] <= WIDEST
    assert all(row.met for row in forecast.run())


def test_the_score_is_as_good_for_each_program_with_a_number_that_the_others_have_chosen() -> None:
    assert LEAST <= left_out_score().percentage <= MOST


def test_the_page_has_the_score() -> None:
    assert section() in PAGE.read_text(), "write the text of bench.forecast.section() into it"


def test_a_score_counts_what_is_right_and_what_has_no_forecast() -> None:
    made = [Scored("a", "alone", seconds, Forecast(90.0, 110.0), 2) for seconds in (89.0, 90.0, 110.0, 111.0)]
    silent = [Scored("b", "alone", 1.0, None, 1), Scored("b", "alone", 1.0, None, 2)]
    total = Score([*made, *silent])
    assert total.percentage == 50.0
    assert (len(total.made), total.without_range) == (4, 1)
    assert {name: len(part.runs) for name, part in total.by_program().items()} == {"a": 4, "b": 2}
