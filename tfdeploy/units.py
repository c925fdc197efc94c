"""Durations, sizes and times: from text to numbers and back; texts in the width of a terminal. Pure."""

import datetime
import re
from collections.abc import Sequence

DURATION_FORM = 'a duration such as "90s", "10m", "1h30m", "2d" or "0", or a number of seconds'
SIZE_FORM = 'a size such as "512MiB", "2GiB" or "1.5G"'

_LEAST_WIDTH = 30
"""No text is wrapped for a narrower terminal."""

_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(
    rf"(?:{_NUMBER}\s*d)?\s*(?:{_NUMBER}\s*h)?\s*(?:{_NUMBER}\s*m(?:in)?)?\s*(?:{_NUMBER}\s*s)?", re.IGNORECASE
)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?")
_FACTORS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3}
_FACTORS |= {unit: 1000.0 ** (power + 2) for power, unit in enumerate("MGTPE")}
_FACTORS |= {f"{unit}i": 1024.0 ** (power + 1) for power, unit in enumerate("KMGTPE")}


def moment(at: float) -> str:
    """A time as text, `2026-11-21 04:12:07Z`; empty for 0."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at else ""


def from_moment(text: str) -> float:
    """The time of such a text, in seconds since 1970; 0 for another text."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def seconds(text: str) -> float:
    """A duration in seconds: `"90"`, `"90s"`, `"10min"`, `"1h30m"`, `"1 d 12 h"`.

    Raises:
        ValueError: the text is not a valid duration.
    """
    stripped = text.strip()
    if re.fullmatch(_NUMBER, stripped):
        return float(stripped)
    match = _DURATION.fullmatch(stripped)
    if match is None or not stripped:
        raise ValueError(f"not a valid duration: {text!r}")
    days, hours, minutes, rest = (float(part or 0) for part in match.groups())
    return days * 86_400 + hours * 3600 + minutes * 60 + rest


def size(text: str) -> int:
    """A size in bytes. `"2GiB"`, `"2G"` and `"2GB"` are all 2 * 1024**3, as in Docker.

    Raises:
        ValueError: the text is not a valid size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a valid size: {text!r}")
    number = float(match.group(1)) * 1024 ** _POWERS[match.group(2).lower()]
    if number == float("inf"):
        raise ValueError("the size is too large")
    return int(number)


def quantity(text: str) -> float:
    """A quantity of Kubernetes as a number: `"500m"` is 0.5, `"4Gi"` is 4 * 1024**3, `"1e3"` is 1000.

    https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/

    Raises:
        ValueError: the text is not a valid quantity.
    """
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"not a valid quantity: {text!r}")
    return float(match[1] + (match[2] or "")) * _FACTORS[match[3] or ""]


def text_of_size(number: float) -> str:
    """A size in bytes as text: `1.5 GiB`."""
    value = float(number)
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f} {units[0]}" if value % 1 else f"{value:.0f} {units[0]}"


def counted(number: int, thing: str) -> str:
    """A number with its noun: `1 task`, `2 tasks`."""
    return f"{number} {thing if number == 1 else plural(thing)}"


def plural(thing: str) -> str:
    """The plural of a noun: `tasks`, `policies`."""
    return re.sub(r"([^aeiou])y$", r"\1ie", thing) + "s"


def named(names: Sequence[str], most: int) -> str:
    """So many of the names at most, and the number of the others: `worker-0, worker-1 and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def text_of_number(number: float) -> str:
    """A number as text, without an exponent where it has a usual size: `1000000`, not `1e+06`; `0.25`."""
    return f"{number:.0f}" if abs(number) < 1e15 and float(number).is_integer() else f"{number:g}"


def text_of_seconds(number: float) -> str:
    """A duration in seconds as text: `72h`, `1h30m`, `1m30s`."""
    whole = round(number)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def dollars(number: float) -> str:
    """An amount of money: `$1.23`, `$1,234.50`; below ten cents with up to four digits: `$0.0052`."""
    if 0 < number < 0.1:
        digits = f"{number:.4f}".rstrip("0")
        return f"${digits:0<4}" if digits != "0." else "less than $0.0001"
    return f"${number:,.2f}"


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text in so many columns, 0 for no limit. No word is broken; a line that continues is indented as it begins."""
    lines = text.split("\n")
    return lines if width < _LEAST_WIDTH else [part for line in lines for part in _wrapped_line(line, width)]


def _wrapped_line(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    import textwrap  # takes long to load, and only terminals need it

    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]
