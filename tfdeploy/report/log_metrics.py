"""Curves from the output of training programs: which quantity, at which step. Pure.

It reads the usual forms (`step 100 loss 0.5`, `loss = 0.5, step = 100`, Keras' progress lines, JSON) and ignores all others: a
wrong curve is worse than a missing one.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ..agent.record.steps import EPOCH_NUMBER, step_in
from ..agent.record.terminal_text import plain

STEP, EPOCH, TIME = "step", "epoch", "time"
"""The x axes that a curve may have."""

Points = list[tuple[float, float]]


class Reading(NamedTuple):
    """What one line reports of training."""

    step: float | None
    epoch: float | None
    done: float | None
    """The part of an epoch that is done, from a progress line."""
    values: dict[str, float]


@dataclass(frozen=True)
class Curve:
    """One quantity of all tasks. If a task began again, its points go back to an earlier step."""

    by: str
    series: dict[str, Points] = field(default_factory=dict)


_LONGEST = 4000
"""What is printed beyond this many characters of a line is ignored."""

_NUMBER = r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|[-+]?(?:nan|inf(?:inity)?))"

_WORTH_READING = re.compile(
    r"loss|acc|cost|entropy|perplexity|precision|recall|auc|mse|mae|error|step|epoch|iter", re.IGNORECASE
)
_PROGRESS = re.compile(r"^\s*([0-9]+)/([0-9]+)\s*(?:\[[=>. ]*\]|[━╸ ]+\s|-)")

_QUANTITY = re.compile(
    r"(?<![\w/.-])(?:(?P<before>[a-z][\w-]*)\s+)?"
    r"(?P<name>(?:[a-z]\w*?[_-])?"
    r"(?:loss|cost|cross[ _-]?entropy|xent|perplexity|accuracy|acc|precision|recall|auc|mse|mae|rmse|mean_(?:squared|absolute)_error))"
    r"(?![\w-])(?:\s+(?:at|after)\s+(?:(?:global|training)[ _])?(?:step|iteration|epoch)?\s*\d+(?:\s+(?:training )?steps?)?)?"
    r"""(?P<is>["']?\s*[:=]\s*["'\[(]?(?:(?:np|numpy|tf)\.\w+\()?|\s+(?:is\s+)?)"""
    rf"(?P<value>{_NUMBER})(?P<percent>\s?%)?(?!\.?\w|[-/:]\d)(?P<end>\s*$|\s*[],;)|}}])?",
    re.IGNORECASE,
)

_EVALUATION = re.compile(
    r"(?<![\w/.-])(?P<word>validation|validating|evaluation|evaluating|evaluated|eval|testing|test|saving dict for)(?![\w./-])",
    re.IGNORECASE,
)
"""A line that begins so reports of an evaluation, whatever it calls its quantities."""

_PLAIN = ["train", "training", "minibatch", "mini-batch", "batch", "total", "current", "average", "avg", "mean"]
_MEANS = {
    **dict.fromkeys(("val", "valid", "validation"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation", "held-out"), "test"),
    **{word: word for word in ("final", "top-1", "top-5", "d", "g", "generator", "discriminator")},
    **dict.fromkeys(_PLAIN, ""),
}
_SAME = {"acc": "accuracy", "xent": "cross entropy", "crossentropy": "cross entropy", "cross-entropy": "cross entropy"}
_OTHER_LOSSES = re.compile("packets?|data|frame|connection|signal|message|information|heat|precision|no|a|the")
_EVALUATIONS = ("validation", "test", "final")
_SHARES = ("accuracy", "precision", "recall", "auc")


def reading(text: str) -> Reading:
    """What a line reports: `step 1,200 loss 0.31` is step 1200 and a value of `loss`."""
    return _reading(plain(text)[:_LONGEST])


@lru_cache(maxsize=1 << 17)
def _reading(line: str) -> Reading:
    """Cached, as a live page reads lines repeatedly."""
    if not _WORTH_READING.search(line):
        return Reading(None, None, None, {})
    step = step_in(line)
    epoch = EPOCH_NUMBER.search(line) if "epoch" in line.lower() else None
    progress = _PROGRESS.match(line)
    values: dict[str, float] = {}
    matches = list(_QUANTITY.finditer(line))
    evaluation = _EVALUATION.search(line[: matches[0].start("name")]) if matches else None
    for match in matches:
        name, value = _name(match), _value(match)
        if name and value is not None:
            values.setdefault(_of_evaluation(name, evaluation["word"]) if evaluation else name, value)
    return Reading(
        None if step is None else float(step),
        float(epoch[1]) if epoch and len(epoch[1]) < 16 else None,
        _part(progress) if progress else None,
        values,
    )


def _part(progress: re.Match[str]) -> float | None:
    done, total = (int(text[:15]) for text in progress.groups())
    return done / total if 0 < done <= total else None


def _name(match: re.Match[str]) -> str:
    """The quantity's name, such as `validation accuracy`; empty if the words mean something else."""
    before = (match["before"] or "").lower()
    if _OTHER_LOSSES.fullmatch(before):
        return ""
    name = re.sub(r"cross[ _-]?entropy", "crossentropy", match["name"].lower())
    *front, last = re.split("[_-]", name)
    meant = [_MEANS.get(word, word) if word != "mean" else word for word in front]
    words = [_MEANS.get(before, ""), *meant, _SAME.get(last, last)]
    return " ".join(word for word in words if word)


def _of_evaluation(name: str, word: str) -> str:
    if name.startswith(_EVALUATIONS):
        return name
    return f"{'validation' if word.lower().startswith('valid') else 'test'} {name}"


def is_of_evaluation(quantity: str) -> bool:
    """Whether a quantity is measured beside the training, or at its end."""
    return quantity.startswith(_EVALUATIONS)


def _value(match: re.Match[str]) -> float | None:
    """The number; None if it is probably a count of something else."""
    text = match["value"].lower()
    if not match["is"].strip(" \tis") and text.lstrip("+-").isdigit() and match["end"] is None:
        return None
    value = float(text) / (100 if match["percent"] else 1)
    is_share = any(word in match["name"].lower() for word in ("acc", *_SHARES))
    return None if is_share and math.isfinite(value) and not 0 <= value <= 100 else value


def curves(lines: Mapping[str, Sequence[tuple[float, str]]]) -> dict[str, Curve]:
    """Each quantity's curve, from lines with their times.

    The x axis of a quantity is that of most of its points: step, epoch or time (in seconds since the first line). The other points
    are left out, such as a final loss that is printed without a step.
    """
    begin = min((line[0] for printed in lines.values() for line in printed[:1]), default=0.0)
    points = [(hostname, *point) for hostname, printed in lines.items() for point in _points(printed, begin)]
    count = Counter((quantity, by) for _, quantity, by, _, _ in points)
    axes: dict[str, str] = {}
    for (quantity, by), number in sorted(count.items(), key=lambda item: (STEP, EPOCH, TIME).index(item[0][1])):
        if quantity not in axes or number > count[quantity, axes[quantity]]:
            axes[quantity] = by
    result = {quantity: Curve(by) for quantity, by in axes.items()}
    for hostname, quantity, by, x, y in points:
        if by == axes[quantity]:
            result[quantity].series.setdefault(hostname, []).append((x, y))
    return dict(sorted(result.items(), key=lambda item: _order(item[0])))


def _order(quantity: str) -> tuple[int, str]:
    """Loss first, then accuracy, then the rest."""
    rank = next((place for place, word in enumerate(("loss", "accuracy")) if quantity.endswith(word)), 2)
    return rank, quantity


def _points(printed: Sequence[tuple[float, str]], begin: float) -> Iterator[tuple[str, str, float, float]]:
    """Quantity, x axis, and the two values."""
    epoch: float | None = None
    for at, text in printed:
        read = reading(text)
        if read.epoch is not None:
            epoch = read.epoch
        if read.step is not None:
            by, x = STEP, read.step
        elif read.epoch is not None:
            by, x = EPOCH, read.epoch
        elif read.done is not None and epoch is not None:
            by, x = EPOCH, epoch - 1 + read.done
        else:
            by, x = TIME, at - begin
        for quantity, value in read.values.items():
            yield quantity, by, x, value
