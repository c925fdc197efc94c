"""Arguments read one by one; each reader refuses what an argument cannot be. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import SpecError
from .quantities import DURATION_FORM, SIZE_FORM, seconds, size

LONGEST_DURATION = 366 * 24 * 3600.0

_LONGEST_SHOWN = 100
_TEXT = "a text, with neither NUL nor half characters"


class Asked:
    """The arguments of one cluster, or of one job in it."""

    def __init__(self, where: str, args: Mapping[str, Any]) -> None:
        self.where = where
        self.args = args

    def refuse(self, key: str, wrong: str, remedy: str) -> SpecError:
        """The error to raise."""
        return SpecError(f"{self.where}: {key}", wrong, remedy)

    def _get(self, key: str, kind: type | tuple[type, ...], words: str) -> Any:
        value = self.args.get(key)
        wrong_bool = isinstance(value, bool) and kind is not bool
        if value is not None and (wrong_bool or not isinstance(value, kind)):
            raise self.refuse(key, f"is {_shown(key, value)}, of type {type(value).__name__}", f"It takes {words}.")
        return value

    def text(self, key: str) -> str:
        """A text; empty when not given."""
        value: str = self._get(key, str, "a text") or ""
        if _unfit(value):
            raise self.refuse(key, f"is {_shown(key, value)}: it has {_unfit(value)} in it", "Leave that out.")
        return value

    def matching(self, key: str, pattern: re.Pattern[str], words: str) -> str:
        """A text of this form, which `words` say; empty when not given."""
        text = self.text(key)
        if text and not pattern.fullmatch(text):
            raise self.refuse(key, f"is {_shown(key, text)}", f"It takes {words}.")
        return text

    def flag(self, key: str) -> bool:
        """True or False; False when not given."""
        return bool(self._get(key, bool, "True or False"))

    def whole(self, key: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self._get(key, int, "a whole number")
        if value is None:
            return default
        if not least <= value <= most:
            raise self.refuse(key, f"is {_shown(key, value)}", f"It takes a whole number from {least} to {most}.")
        return int(value)

    def number(self, key: str) -> float:
        """A number, 0 or more; 0 when not given."""
        value = self._get(key, (int, float), "a number") or 0
        if not 0 <= value < 1e6:
            raise self.refuse(key, f"is {_shown(key, value)}", "It takes a number from 0 to a million.")
        return float(value)

    def duration(self, key: str, default: float) -> float:
        """A duration in seconds, from a number or a text such as `10m`."""
        value = self._get(key, (str, int, float), DURATION_FORM)
        try:
            found = default if value is None else seconds(value) if isinstance(value, str) else float(value)
        except (ValueError, OverflowError):
            found = -1.0
        if not 0 <= found <= LONGEST_DURATION:
            raise self.refuse(key, f"{_shown(key, value)} is no duration", f"It takes {DURATION_FORM}, up to a year.")
        return found

    def bytes(self, key: str) -> int:
        """A size in bytes, from a number or a text such as `2GiB`; 0 when not given."""
        value = self._get(key, (str, int), SIZE_FORM)
        try:
            found = 0 if value is None else size(value) if isinstance(value, str) else int(value)
        except ValueError:
            found = -1
        if found < 0:
            raise self.refuse(key, f"{_shown(key, value)} is no size", f"It takes {SIZE_FORM}.")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self._get(key, (list, tuple), "a list of texts") or ()
        for item in value:
            if not isinstance(item, str) or _unfit(item):
                raise self.refuse(key, f"has {_shown(key, item)} in it", f"Each takes {_TEXT}.")
        return tuple(value)

    def mapping(self, key: str, names: re.Pattern[str] | None = None, values: type = str) -> dict[str, Any]:
        """Names to values of one type."""
        value = self._get(key, Mapping, "names and their values") or {}
        for name, item in value.items():
            if not isinstance(name, str) or _unfit(name) or (names and not names.fullmatch(name)):
                remedy = f"Names look like {names.pattern if names else 'text'}."
                raise self.refuse(key, f"has the name {_shown('', name)}", remedy)
            if not isinstance(item, values) or (isinstance(item, str) and _unfit(item)):
                words = "names and their values" if values is Mapping else _TEXT
                raise self.refuse(f"{key}: {name}", f"is {_shown(key, item)}", f"It takes {words}.")
        return dict(value)

    def only(self, key: str, known: Sequence[str]) -> None:
        """Refuse names that nobody reads."""
        for name in self.args:
            if name not in known:
                raise self.refuse(key, f"{_shown(key, name)} is unknown", f"It knows {', '.join(known)}.")


def _shown(key: str, value: Any) -> str:
    """A value as a message shows it: short, and nothing of a secret."""
    if key == "secrets":
        return "a value that is not shown"
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _unfit(text: str) -> str:
    """What of a text no command line, environment or file name can hold; empty when it is fit."""
    if "\0" in text:
        return "a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "half of a character (a surrogate)"
    return ""
