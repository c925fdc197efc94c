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
    return int(float(match.group(1)) * 1024 ** _POWERS[match.group(2).lower()])


def text_of_size(number: float) -> str:
    """A size in bytes as text: `1.5 GiB`."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value /= 1024
    else:
        unit = "TiB"
    return f"{value:.1f} {unit}" if value % 1 else f"{value:.0f} {unit}"
