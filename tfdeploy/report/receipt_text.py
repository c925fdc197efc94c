"""A receipt as text: what was submitted, and what it cost. Pure."""

import re
from collections.abc import Mapping, Sequence

from ..agent.flags import shown_command
from ..agent.record.artifacts import CHECKPOINT, StoredArtifact
from ..agent.run_spec import RunSpec
from ..receipts import Receipt, RunOutcome
from ..units import counted, dollars, text_of_size

_STEP = re.compile(r"-(\d+)$")
"""TensorFlow's names of checkpoints end with their step: `model.ckpt-4200`."""


def receipt_facts(
    spec: RunSpec, outcome: RunOutcome, receipt: Receipt | None, artifacts: Sequence[StoredArtifact] = ()
) -> dict[str, str]:
    """What a receipt has beside arguments and versions, by name; without what is not known."""
    commands = {f"command of {name}": shown_command(job.command) for name, job in spec.jobs.items() if job.command}
    facts = {
        "command": shown_command(spec.command),
        **commands,
        "tasks": counts_text(outcome.tasks),
        "machines": counts_text(receipt.machines) if receipt else "",
        "code": _code(spec.code, receipt),
        "checkpoint": ", ".join(_checkpoint(item.name) for item in artifacts if item.kind == CHECKPOINT),
        "steps/s": speed_text(outcome),
        "cost": cost_text(outcome),
    }
    return {name: text for name, text in facts.items() if text}


def _checkpoint(name: str) -> str:
    step = _STEP.search(name)
    return f"{name} (step {int(step[1]):,})" if step else name


def _code(name: str, receipt: Receipt | None) -> str:
    if not name or receipt is None or not receipt.code_files:
        return name
    return f"{name} ({counted(receipt.code_files, 'file')}, {text_of_size(receipt.code_bytes)})"


def cost_text(outcome: RunOutcome) -> str:
    """What a run cost; empty where that is not known."""
    if outcome.cost is None:
        return ""
    return f"at least {dollars(outcome.cost)}" if outcome.is_least_cost else dollars(outcome.cost)


def speed_text(outcome: RunOutcome) -> str:
    """The steps a second of a run; empty where they are not known."""
    return "" if outcome.steps_per_second is None else f"{outcome.steps_per_second:.4g}"


def counts_text(counts: Mapping[str, int]) -> str:
    """Names with their numbers: `ps: 1, worker: 2`."""
    return ", ".join(f"{name}: {count}" if name else str(count) for name, count in counts.items())
