"""Durations, sizes, quantities and amounts in text."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdeploy.units import (
    counted,
    dollars,
    quantity,
    seconds,
    size,
    text_of_number,
    text_of_seconds,
    text_of_size,
    wrapped,
)


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (seconds, "0", 0),
        (seconds, "90", 90),
        (seconds, "90s", 90),
        (seconds, "10m", 600),
        (seconds, "1h30m", 5400),
        (seconds, "1d12h", 129_600),
        (seconds, "1 h 30 min", 5400),
        (size, "0", 0),
        (size, "512MiB", 512 * 1024**2),
        (size, "2GiB", 2 * 1024**3),
        (size, "2GB", 2 * 1024**3),
        (size, "1.5G", 3 * 1024**3 // 2),
        (size, "3b", 3),
        (quantity, "2", 2),
        (quantity, "500m", 0.5),
        (quantity, "4Gi", 4 << 30),
        (quantity, "1.5G", 1.5e9),
        (quantity, "12E", 12e18),
    ],
)
def test_a_duration_a_size_and_a_quantity_of_kubernetes_are_read(
    read: Callable[[str], float], text: str, expected: float
) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("read", "texts", "wrong"),
    [
        (seconds, ["", " ", "soon", "-1", "10 minutes", "1s2m", "1w", "1e3", "1h 30", "nan", "inf", "."], "duration"),
        (size, ["", "much", "-1", "2 G i B", "1P", "2Gi B", "1,5G", "GiB"], "not a valid size"),
        (size, ["9" * 400 + "T"], "too large"),
        (quantity, ["", "Gi", "4GiB", "4 Gi", "1K", "a"], "not a valid quantity"),
    ],
)
def test_what_is_none_is_refused(read: Callable[[str], float], texts: list[str], wrong: str) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=wrong):
            read(text)


@pytest.mark.parametrize(
    ("shown", "number", "text"),
    [
        (text_of_size, 0, "0 B"),
        (text_of_size, 1023, "1023 B"),
        (text_of_size, 1536, "1.5 KiB"),
        (text_of_size, 2 * 1024**4, "2 TiB"),
        (text_of_size, 5000 * 1024**4, "5000 TiB"),
        (text_of_number, 0, "0"),
        (text_of_number, 0.25, "0.25"),
        (text_of_number, 2.5e6, "2500000"),
        (text_of_number, 1e300, "1e+300"),
        (dollars, 0, "$0.00"),
        (dollars, 0.00001, "less than $0.0001"),
        (dollars, 0.0052, "$0.0052"),
        (dollars, 0.05, "$0.05"),
        (dollars, 0.0999999, "$0.10"),
        (dollars, 0.3, "$0.30"),
        (dollars, 1.234, "$1.23"),
        (dollars, 1234.5, "$1,234.50"),
        (text_of_seconds, 0, "0s"),
        (text_of_seconds, 90, "1m30s"),
        (text_of_seconds, 900, "15m"),
        (text_of_seconds, 5_400, "1h30m"),
        (text_of_seconds, 259_200, "72h"),
        (text_of_seconds, 3_601, "1h1s"),
    ],
)
def test_a_number_is_shown_as_people_write_it(shown: Callable[[float], str], number: float, text: str) -> None:
    assert shown(number) == text


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused_by_a_value_error(text: str) -> None:
    for read in (seconds, size):
        try:
            assert read(text) >= 0
        except ValueError:
            continue


@pytest.mark.parametrize("width", [40, 76, 80, 120])
@given(text=st.text("abc -`.\n", max_size=400))
def test_wrapped_lines_fit_and_no_word_is_broken(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(len(line) <= width or not line.strip().count(" ") for line in lines)


def test_a_wrapped_line_keeps_its_indent_and_a_narrow_or_unknown_terminal_has_no_limit() -> None:
    line = "  one two three four five six seven eight nine ten"
    assert wrapped(line, 40) == ["  one two three four five six seven", "  eight nine ten"]
    assert wrapped(line, 0) == wrapped(line, 29) == [line]
    assert wrapped("a\n\nb", 80) == ["a", "", "b"]


@pytest.mark.parametrize(
    ("number", "thing", "text"),
    [(1, "task", "1 task"), (2, "task", "2 tasks"), (0, "network policy", "0 network policies"), (3, "key", "3 keys")],
)
def test_a_number_has_its_noun(number: int, thing: str, text: str) -> None:
    assert counted(number, thing) == text
