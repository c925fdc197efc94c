"""Durations and sizes in text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdeploy.units import counted, quantity, seconds, size, text_of_number, text_of_size, wrapped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("1d12h", 129_600),
        ("1 h 30 min", 5400),
    ],
)
def test_a_duration_is_read(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", " ", "soon", "-1", "10 minutes", "1s2m", "1w", "1e3", "1h 30", "nan", "inf", "."])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a valid duration"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("512MiB", 512 * 1024**2),
        ("2GiB", 2 * 1024**3),
        ("2GB", 2 * 1024**3),
        ("1.5G", 3 * 1024**3 // 2),
        ("3b", 3),
    ],
)
def test_a_size_is_read(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize("text", ["", "much", "-1", "2 G i B", "1P", "2Gi B", "1,5G", "GiB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a valid size"):
        size(text)


def test_a_size_beyond_all_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        size("9" * 400 + "T")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (2 * 1024**4, "2 TiB"),
        (5000 * 1024**4, "5000 TiB"),
    ],
)
def test_a_size_is_shown(number: int, text: str) -> None:
    assert text_of_size(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (2.5e6, "2500000"),
        (1e300, "1e+300"),
    ],
)
def test_a_number_has_no_exponent_where_its_size_is_usual(number: float, text: str) -> None:
    assert text_of_number(number) == text


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
    ("text", "number"),
    [
        ("2", 2),
        ("500m", 0.5),
        ("4Gi", 4 << 30),
        ("1.5G", 1.5e9),
        ("12E", 12e18),
    ],
)
def test_a_quantity_of_kubernetes_is_read(text: str, number: float) -> None:
    assert quantity(text) == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "Gi", "4GiB", "4 Gi", "1K", "a"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a valid quantity"):
        quantity(text)


@pytest.mark.parametrize(
    ("number", "thing", "text"),
    [(1, "task", "1 task"), (2, "task", "2 tasks"), (0, "network policy", "0 network policies"), (3, "key", "3 keys")],
)
def test_a_number_has_its_noun(number: int, thing: str, text: str) -> None:
    assert counted(number, thing) == text
