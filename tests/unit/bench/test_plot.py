"""The picture of costs by number of tasks."""

import xml.etree.ElementTree as ET

from bench.plot import picture
from bench.table import Curve, Row

SVG = "{http://www.w3.org/2000/svg}"


def row(name: str, quantity: str, unit: str, *values: float) -> Row:
    points = [(10.0 ** (place + 1), value) for place, value in enumerate(values)]
    return Row(name, "", "", [1.0], 1.0, None, curve=Curve(quantity, unit, name, points))


ROWS = [row("plan", "time", "ms", 1, 10, 100), row("page", "time", "ms", 2, 15, 99), row("plan", "memory", "MB", 1, 9)]


def test_a_panel_for_each_quantity_with_a_named_line_for_each_row() -> None:
    root = ET.fromstring(picture(ROWS))
    texts = [item.text for item in root.iter(f"{SVG}text")]
    assert len(list(root.iter(f"{SVG}polyline"))) == 3
    assert [texts.count(name) for name in ("time (ms)", "memory (MB)", "plan", "page")] == [1, 1, 2, 1]
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text is not None
    assert "time: plan: 1 ms with 10 tasks, 100 ms with 1000" in title.text


def test_linear_growth_is_a_straight_line_from_corner_to_corner() -> None:
    line = next(ET.fromstring(picture(ROWS[:1])).iter(f"{SVG}polyline"))
    points = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    assert points == [(64.0, 276.0), (214.0, 156.0), (364.0, 36.0)]


def test_the_same_rows_give_the_same_text_and_names_do_not_overlap() -> None:
    assert picture(ROWS) == picture(list(ROWS))
    root = ET.fromstring(picture(ROWS[:2]))
    ends = {item.text: float(item.attrib["y"]) for item in root.iter(f"{SVG}text") if item.text in ("plan", "page")}
    assert abs(ends["plan"] - ends["page"]) >= 12


def test_rows_without_a_curve_are_not_drawn() -> None:
    assert "polyline" in picture([*ROWS, Row("import", "", "", [1.0], 1.0, None)])
