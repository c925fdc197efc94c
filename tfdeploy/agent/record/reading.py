"""What a line of a training program's output reports: its step or epoch, and quantities such as a loss. Pure.

It reads the usual forms (`step 100 loss 0.5`, `loss = 0.5, step = 100`, Keras' progress lines, JSON) and ignores all others: a
wrong curve is worse than a missing one.
"""

import math
import re
from typing import Dict, Match, NamedTuple, Optional

from .terminal_text import plain

_COUNT = r"([0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?![\d,]*\.?\d)(?!\w)"
_IS = r"""["']?\s{0,3}[:=\#]?\s{0,3}["'\[(]?"""

_GLOBAL_STEP = re.compile(rf"(?<![\w/.])global[ _-]?step{_IS}{_COUNT}", re.IGNORECASE)
_STEP = re.compile(rf"(?<![\w/.-])(?<!per )(?:step|iteration|iter){_IS}{_COUNT}", re.IGNORECASE)
_AFTER = re.compile(rf"\bafter {_COUNT} (?:training )?(?:step|iteration)", re.IGNORECASE)

_EPOCH = re.compile(rf"""(?<![\w/.-])epoch{_IS}([0-9]+(?:\.[0-9]+)?)(?![\d.]*\w)""", re.IGNORECASE)

_STEP_AND_GOAL = re.compile(
    r"\b(?:step|iteration|iter)\b\D{0,3}[0-9,]{1,15}\s*(?:/|of)\s*([0-9,]{1,15})(?![\d,])", re.IGNORECASE
)
"""A number with 16 digits or more is not a step."""


class Reading(NamedTuple):
    """What one line reports of training."""

    step: Optional[float]
    epoch: Optional[float]
    done: Optional[float]
    """The part of an epoch that is done, from a progress line."""
    values: Dict[str, float]
    goal: Optional[float] = None
    """The last step of the training, as in `step 5/200`."""

    @property
    def is_progress(self) -> bool:
        """Whether the line reports a step, or an epoch."""
        return self.step is not None or self.epoch is not None


NOTHING = Reading(None, None, None, {})
"""Of a line that reports nothing."""

_LONGEST = 4000
"""What is printed beyond this many characters of a line is ignored."""

_NUMBER = r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|[-+]?(?:nan|inf(?:inity)?))"

_WORDS = "loss acc cost entropy perplexity precision recall auc mse mae error step epoch iter".split()  # noqa: SIM905
"""A line without any of them reports nothing. One pattern for all of them takes ten times as long."""

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
    line = plain(text)[:_LONGEST]
    lowered = line.lower()
    if not any(word in lowered for word in _WORDS):
        return NOTHING
    step, goal = _step_in(line), _STEP_AND_GOAL.search(line)
    epoch = _EPOCH.search(line) if "epoch" in lowered else None
    progress = _PROGRESS.match(line)
    values: Dict[str, float] = {}
    matches = list(_QUANTITY.finditer(line))
    evaluation = _EVALUATION.search(line[: matches[0].start("name")]) if matches else None
    for match in matches:
        name, value = _name(match), _value(match)
        if name and value is not None:
            values.setdefault(_of_evaluation(name, evaluation["word"]) if evaluation else name, value)
    return Reading(
        step,
        float(epoch[1]) if epoch and len(epoch[1]) < 16 else None,
        _part(progress) if progress else None,
        values,
        float(goal[1].replace(",", "") or 0) or None if goal else None,
    )


def _step_in(line: str) -> Optional[float]:
    match = _GLOBAL_STEP.search(line) if "global" in line.lower() else None
    match = match or _STEP.search(line) or _AFTER.search(line)
    return float(match[1].replace(",", "")) if match else None


def _part(progress: Match[str]) -> Optional[float]:
    done, total = (int(text[:15]) for text in progress.groups())
    return done / total if 0 < done <= total else None


def _name(match: Match[str]) -> str:
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


def _value(match: Match[str]) -> Optional[float]:
    """The number; None if it is probably a count of something else."""
    text = match["value"].lower()
    if not match["is"].strip(" \tis") and text.lstrip("+-").isdigit() and match["end"] is None:
        return None
    value = float(text) / (100 if match["percent"] else 1)
    is_share = any(word in match["name"].lower() for word in ("acc", *_SHARES))
    return None if is_share and math.isfinite(value) and not 0 <= value <= 100 else value
