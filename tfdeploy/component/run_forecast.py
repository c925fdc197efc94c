"""What the receipts on this computer have of the run before a new one, and of runs like the new one, as a line of its preview.

Nothing is observed for it: an engine or a record that responds slowly does not delay it.
"""

from collections import Counter
from dataclasses import replace

from .. import receipts, registry
from ..agent.run_spec import RunSpec
from ..agent.run_state import RunState
from ..plan.inventory import Inventory
from ..plan.plan import Plan, starts_new_run
from ..receipts import Receipt, RunOutcome
from ..report.forecast import forecast, forecast_line
from ..report.run_history import StoredRun, changes, outcome_of


def forecast_lines(entry: registry.Entry, plan: Plan, inventory: Inventory) -> list[str]:
    """The line; none where the update starts no new run, and where this computer did not submit the run before it."""
    try:
        return _lines(entry, plan, inventory)
    except receipts.DAMAGED:
        return []  # a preview does not fail because of it


def _lines(entry: registry.Entry, plan: Plan, inventory: Inventory) -> list[str]:
    current = inventory.run
    if current is None or plan.run.serve or not starts_new_run(plan, inventory):
        return []
    earlier: dict[str, StoredRun] = {}
    for run_id, receipt in receipts.read_all(entry.cluster).items():
        outcome = _outcome(receipt, current) if run_id == current.spec.id else receipt.outcome
        if outcome is not None and receipt.spec is not None:
            earlier[run_id] = _run(entry, receipt.spec, outcome, receipt)
    last = earlier.get(current.spec.id)
    if last is None:
        return []
    sizes = receipts.machine_counts(machine.size for machine in entry.expected.machines)
    outcome = RunOutcome(entry.begun, tasks=Counter(task.job for task in plan.tasks))
    planned = _run(entry, plan.run, outcome, Receipt(entry.options, entry.versions, sizes, plan.run))
    return [forecast_line(last, changes(last, planned), forecast(list(earlier.values()), planned))]


def _outcome(receipt: Receipt, current: RunState) -> RunOutcome:
    """How the current run went. Its receipt does not have that yet if it has ended after the last update."""
    stored, observed = receipt.outcome, outcome_of(current, {}, is_current=True)
    if stored is None or stored.submitted != current.submitted_at:
        return observed
    return stored if stored.is_final else replace(observed, stays=stored.stays)


def _run(entry: registry.Entry, spec: RunSpec, outcome: RunOutcome, receipt: Receipt) -> StoredRun:
    cluster = entry.cluster
    return StoredRun(entry.stack_key, entry.title, cluster["id"], cluster["backend"], spec, outcome, receipt)
