"""Durations and sizes as people write them. Pure."""

import re

DURATION_FORM = 'seconds, or a duration such as "90s", "10m", "1h30m" or "0"'
SIZE_FORM = 'a size such as "512MiB", "2GiB" or "1.5G"'

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def seconds(text: str) -> float:
    """A duration in seconds: `"90"`, `"90s"`, `"10m"`, `"1h30m"`.

    Raises:
        ValueError: the text is no duration.
    """
    stripped = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", stripped):
        return float(stripped)
    match = _DURATION.fullmatch(stripped)
    if match is None or not stripped:
        raise ValueError(f"not a duration: {text!r}")
    hours, minutes, rest = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + rest


def size(text: str) -> int:
    """A size in bytes: `"2GiB"` and `"2G"` are 2 * 1024**3, as Docker reads them; `"2GB"` too.

    Raises:
        ValueError: the text is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a size: {text!r}")
    number = float(match.group(1)) * 1024 ** _POWERS[match.group(2).lower()]
    if number == float("inf"):
        raise ValueError("larger than any size")
    return int(number)


def text_of_size(number: float) -> str:
    """A size in bytes as text: `1.5 GiB`."""
    value = float(number)
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f} {units[0]}" if value % 1 else f"{value:.0f} {units[0]}"


def counted(number: int, thing: str) -> str:
    """A number of things: `1 task`, `2 tasks`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def text_of_seconds(number: float) -> str:
    """A duration in seconds as it is asked for: `72h`, `1h30m`, `90s` as `1m30s`."""
    whole = round(number)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def dollars(number: float) -> str:
    """An amount of money: `$1.23`, `$1,234.50`; of less than ten cents with as many digits as say something: `$0.0052`."""
    if 0 < number < 0.1:
        digits = f"{number:.4f}".rstrip("0")
        return f"${digits:0<4}" if digits != "0." else "less than $0.0001"
    return f"${number:,.2f}"
