"""The step or epoch that a line of a training program's output reports. Pure."""

import re
from typing import Optional

COUNT = r"([0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?![\d,]*\.?\d)(?!\w)"
IS = r"""["']?\s{0,3}[:=\#]?\s{0,3}["'\[(]?"""

_GLOBAL_STEP = re.compile(rf"(?<![\w/.])global[ _-]?step{IS}{COUNT}", re.IGNORECASE)
_STEP = re.compile(rf"(?<![\w/.-])(?<!per )(?:step|iteration|iter){IS}{COUNT}", re.IGNORECASE)
_AFTER = re.compile(rf"\bafter {COUNT} (?:training )?(?:step|iteration)", re.IGNORECASE)

EPOCH_NUMBER = re.compile(rf"""(?<![\w/.-])epoch{IS}([0-9]+(?:\.[0-9]+)?)(?![\d.]*\w)""", re.IGNORECASE)


def step_in(line: str) -> Optional[int]:
    """The step of `step 1,200 loss 0.31`: 1200; None without one."""
    lowered = line.lower()
    match = _GLOBAL_STEP.search(line) if "global" in lowered else None
    match = match or _STEP.search(line) or _AFTER.search(line)
    return int(match[1].replace(",", "")) if match else None


def is_progress(line: str) -> bool:
    """Whether it reports a step, or an epoch."""
    return step_in(line) is not None or ("epoch" in line.lower() and EPOCH_NUMBER.search(line) is not None)
