"""What records do not have of a run, or lose: what was submitted and how it went, for `tfdeploy runs` and `tfdeploy diff`.

Receipts are in the user's state folder on the computer that submitted the run. Nothing else depends on them: a file that is missing or
damaged leaves a part of their output out.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .agent.files import write_whole
from .agent.json_data import JsonData
from .agent.run_spec import RunSpec
from .errors import BackendError
from .paths import cluster_folder, make_private, remove_oldest, state_folder

_MAX_RECEIPTS = 200
"""How many receipts of one cluster are stored; those that were written longest ago are deleted first."""

_MAX_ALL_RECEIPTS = 2000
"""How many of all clusters are stored, destroyed ones too, in the same order."""

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a receipt raises in which something has another form."""

_END_OF_TIME = 253402300800.0
"""The year 10000, which no date can show."""


@dataclass(frozen=True)
class RunOutcome(JsonData):
    """How a run went, as far as it was observed. Times are in seconds since 1970."""

    submitted: float
    ended: float | None = None
    """The end of its last task; None while it runs."""
    result: str = ""
    reason: str = ""
    tasks: Mapping[str, int] = field(default_factory=dict)
    """Job to the number of its tasks."""
    metrics: Mapping[str, str | None] = field(default_factory=dict)
    """Name to what its pattern has matched; None for nothing."""
    steps_per_second: float | None = None
    """The last speed; None where the output has no steps."""
    cost: float | None = None
    """What the machines cost from the submission to the end, in USD; None where that is not known."""
    is_final: bool = False
    """Whether the run and its tasks have ended, so that nothing of this changes."""
    stays: tuple[float | None, ...] = ()
    """What each stay of a run that has moved cost, in USD: 0 where nothing is billed, None where it is not known. Then `cost` is their
    sum. Empty for a run that has not moved."""
    has_warnings: bool = False
    """Whether a task that has succeeded has lost processes or models."""

    @property
    def is_least_cost(self) -> bool:
        """Whether `cost` is a part of the cost, because that of a stay is not known."""
        return self.cost is not None and None in self.stays


@dataclass(frozen=True)
class Receipt(JsonData):
    """What was submitted, and how it went."""

    options: Mapping[str, str] = field(default_factory=dict)
    """The arguments as the user wrote them, without secrets."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Python and packages on the computer of the user."""
    machines: Mapping[str, int] = field(default_factory=dict)
    """The size of machines, such as `g6.xlarge`, to how many there were."""
    spec: RunSpec | None = None
    """The specification of the run, without its tasks; None in the receipt of an earlier version."""
    code_files: int = 0
    code_bytes: int = 0
    """The code's number of files, and their size; 0 where that is not known."""
    outcome: RunOutcome | None = None
    """None until the run was observed."""


def write(cluster: Mapping[str, object], run: str, receipt: Receipt) -> None:
    """Store the receipt of a run. A disk that is full or cannot be written is ignored."""
    path = _path(cluster, run)
    with suppress(OSError, BackendError):
        make_private(path.parent)
        write_whole(path, json.dumps(receipt.to_dict(), indent=1), mode=0o600, sync=True, sync_name=False)
        remove_oldest(path.parent, "*.json", _MAX_RECEIPTS)
        remove_oldest(_receipts_folder(), "*/*.json", _MAX_ALL_RECEIPTS)


def write_submitted(cluster: Mapping[str, object], run: str, receipt: Receipt) -> None:
    """Store what was submitted. Where the run has ended, its receipt stays: no task of it starts again."""
    before = read(cluster, run)
    outcome = before.outcome if before else None
    if outcome is None or not outcome.is_final:
        write(cluster, run, replace(receipt, outcome=outcome))


def write_outcome(cluster: Mapping[str, object], run: str, outcome: RunOutcome) -> None:
    """Add to a receipt how its run went. A run that was submitted from another computer gets no receipt."""
    receipt = read(cluster, run)
    if receipt is not None and receipt.outcome != outcome:
        write(cluster, run, replace(receipt, outcome=outcome))


def reopen(cluster: Mapping[str, object], run: str) -> None:
    """A run that has moved continues: how it went so far is not final."""
    receipt = read(cluster, run)
    if receipt is not None and receipt.outcome is not None and receipt.outcome.is_final:
        write(cluster, run, replace(receipt, outcome=replace(receipt.outcome, ended=None, is_final=False)))


def read(cluster: Mapping[str, object], run: str) -> Receipt | None:
    """The receipt of a run; None if this computer has none that can be read."""
    try:
        return from_dict(json.loads(_path(cluster, run).read_bytes()))
    except (OSError, *DAMAGED):
        return None


def read_all(cluster: Mapping[str, object]) -> dict[str, Receipt]:
    """Run to receipt, for all receipts of a cluster that can be read."""
    runs = sorted(path.stem for path in (_receipts_folder() / cluster_folder(cluster)).glob("*.json"))
    return {run: receipt for run in runs if (receipt := read(cluster, run)) is not None}


def from_dict(data: Mapping[str, Any]) -> Receipt:
    """From JSON. Fields of a newer version are ignored, and those that an earlier version did not have are missing.

    Raises:
        Exception: one of `DAMAGED`: something in it has another form.
    """
    receipt = Receipt.from_dict(data)
    went = receipt.outcome or RunOutcome(0.0)
    numbers: list[float | None] = [receipt.code_files, receipt.code_bytes, *receipt.machines.values()]
    numbers += [went.submitted, went.ended, went.steps_per_second, went.cost, *went.stays, *went.tasks.values()]
    texts = (*receipt.options.values(), *receipt.versions.values(), *went.metrics.values())
    is_sound = all(number is None or 0 <= number < _END_OF_TIME for number in numbers)
    if not is_sound or not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError("a receipt in another form")
    return receipt


def machine_counts(sizes: Iterable[str]) -> dict[str, int]:
    """`Receipt.machines`, from the size of each machine."""
    return dict(sorted(Counter(sizes).items()))


def _receipts_folder() -> Path:
    return state_folder() / "receipts"


def _path(cluster: Mapping[str, object], run: str) -> Path:
    return _receipts_folder() / cluster_folder(cluster) / f"{run}.json"
