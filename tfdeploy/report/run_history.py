"""The runs of a cluster as rows of a table: when, how long, what had changed, and how they ended. Pure."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..agent.control.elastic import optional_workers
from ..agent.record.stored_artifact import CHECKPOINT, StoredArtifact
from ..agent.run_spec import RunSpec
from ..agent.run_state import FINAL, TENSORBOARD, RunState
from ..agent.task_command import shown_command
from ..receipts import Receipt, RunOutcome
from ..spec.backends import JOB_MAPPINGS
from ..units import counted, dollars, moment, text_of_number, text_of_seconds, text_of_size
from .events import result_text
from .report import metric_text, metric_value

UNFINISHED = "unfinished"
"""The state of a run without a result that another run has replaced."""

OTHER_CONTENT = "image, run_id or a secret"
"""What else determines a run. The record does not have their values."""

_RENAMED = {
    "serve": "standalone_servers",
    "master": "tf_config_master",
    "grace": "stop_grace_period",
    "max_workers": "elastic",
}
_FIELDS = {
    field: _RENAMED.get(field, field)
    for field in (
        *("command", "code", "requirements", "data_dir", "context", "resume_from", "serve", "master", "flags"),
        *("success", "worker_timeout", "evaluator_timeout", "grace", "start_timeout", "max_workers"),
    )
}
"""Field of a run's specification to the argument that it is from."""


@dataclass(frozen=True)
class StoredRun:
    """One run, as its record or its receipt has it."""

    key: tuple[str, ...]
    """Which cluster it is of, with those before it: `registry.Entry.stack_key`."""
    cluster: str
    """The title of its cluster, which clusters of different logins share."""
    cluster_id: str
    backend: str
    spec: RunSpec
    outcome: RunOutcome
    receipt: Receipt | None = None
    is_current: bool = False
    """Whether it is the current run of a cluster that exists."""
    folder: str = ""
    """Where its record is; empty where only the receipt is left."""
    changed: tuple[str, ...] | None = None
    """What differs from the run before it of the same cluster, in `summaries`; None for the first run."""

    def cells(self, now: float) -> dict[str, str]:
        """Its row in a table, with a column for each metric."""
        outcome = self.outcome
        end = now if outcome.ended is None and self.is_current else outcome.ended
        return {
            "cluster": self.cluster,
            "run": self.spec.id,
            "started": moment(outcome.submitted),
            "took": "" if end is None else text_of_seconds(max(0.0, end - outcome.submitted)),
            "where": self.backend,
            "changed": ", ".join(self.changed) or "-" if self.changed is not None else "first run",
            "result": f"{outcome.result}{' with warnings' if outcome.has_warnings else ''}",
            **{metric_column(name): metric_text(metric_value(text)) for name, text in outcome.metrics.items()},
            "cost": cost_text(outcome),
        }

    def to_dict(self) -> dict[str, Any]:
        """Its document in JSON output."""
        outcome = self.outcome
        return {
            "cluster": self.cluster,
            "backend": self.backend,
            "run": self.spec.id,
            "submitted_at": outcome.submitted,
            "ended_at": outcome.ended,
            "tasks": dict(outcome.tasks),
            "changed": None if self.changed is None else list(self.changed),
            "current": self.is_current,
            "result": outcome.result,
            "reason": outcome.reason,
            "metrics": {name: metric_value(text) for name, text in outcome.metrics.items()},
            "steps_per_second": outcome.steps_per_second,
            "cost_usd": outcome.cost,
            "cost_is_least": outcome.is_least_cost,
        }


_COLUMNS = ("cluster", "run", "started", "took", "where", "changed", "result", "cost", "tasks", "steps/s")


def metric_column(name: str) -> str:
    """The column of a metric, which may have the name of another column."""
    return f"metric {name}" if name in _COLUMNS else name


def summaries(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The runs, the newest first, each with what differs from the run before it."""
    before: dict[tuple[str, ...], StoredRun] = {}
    rows = []
    for run in sorted(runs, key=lambda run: run.outcome.submitted):
        earlier = before.get(run.key)
        rows.append(run if earlier is None else replace(run, changed=tuple(changes(earlier, run))))
        before[run.key] = run
    return rows[::-1]


def outcome_of(state: RunState, metrics: Mapping[str, str | None], is_current: bool) -> RunOutcome:
    """How a run went, from its state in the record; without what it cost, and its speed."""
    result = state.result
    # The controller does not follow the tasks of a run that another run has replaced.
    ends = [task.ended if result else max(task.ended, task.seen) for task in state.training_tasks]
    ended = max([result.at, *ends]) if result else None if is_current else max([state.submitted_at, *ends])
    return RunOutcome(
        submitted=state.submitted_at,
        ended=ended,
        result=result.state if result else "running" if is_current else UNFINISHED,
        reason=result_text(result) if result else "",
        has_warnings=any(task.killed or task.unstored for task in state.training_tasks),
        tasks=_counts(state),
        metrics=metrics,
        is_final=bool(result) and (not is_current or all(task.state in FINAL for task in state.training_tasks)),
    )


def _counts(state: RunState) -> dict[str, int]:
    """Job to the number of its tasks. A run that has ended has those it ran with, whatever later updates of the cluster have."""
    planned = Counter(task.job for task in state.spec.tasks)
    if state.result is None or not state.address_book:
        return dict(planned)
    absent = {name for name in optional_workers(state.spec) if name not in state.tasks or not state.tasks[name].started}
    trained = Counter(name.rpartition("-")[0].replace("-", "_") for name in state.address_book if name not in absent)
    return dict(trained | Counter({job: count for job, count in planned.items() if job == TENSORBOARD}))


def changes(older: StoredRun, newer: StoredRun) -> list[str]:
    """What differs between two runs: the names of arguments, `env LR` for a variable, `2 -> 3 worker` for a count.

    Arguments that the record does not have, versions and machines are compared where both runs have a receipt.
    """
    before, after = older.spec, newer.spec
    named = [name for field, name in _FIELDS.items() if getattr(before, field) != getattr(after, field)]
    named += [f"env {name}" for name in _differing(before.env, after.env)]
    for job in sorted({*before.jobs} & {*after.jobs}):
        old, new = before.jobs[job], after.jobs[job]
        named += [f"{job} command"] if old.command != new.command else []
        named += [f"{job} env {name}" for name in _differing(old.env, new.env)]
    named += [f"secret {name}" for name in sorted({*before.secret_env} ^ {*after.secret_env})]
    counts = _changed_counts(older.outcome.tasks, newer.outcome.tasks)
    if older.receipt is None or newer.receipt is None:
        is_other_content = before.id != after.id and not any(name not in _POLICIES for name in named)
        return [*named, *([OTHER_CONTENT] if is_other_content else []), *counts]
    named += _differing(flat_options(older.receipt.options), flat_options(newer.receipt.options))
    machines = _changed_counts(older.receipt.machines, newer.receipt.machines)
    had, has = older.receipt.versions, newer.receipt.versions
    versions = [f"{name} {had.get(name, 'none')} -> {has.get(name, 'none')}" for name in _differing(had, has)]
    return [*named, *counts, *machines, *versions]


_IN_RECORD = frozenset(
    (
        *_FIELDS.values(),
        "env",
        *JOB_MAPPINGS,
        "secrets",
        "ps",
        "workers",
        "gpu_workers",
        "chief",
        "evaluator",
        "tensorboard",
    )
)
"""Arguments that are compared by what the record has of them."""


def argument_values(spec: RunSpec, options: Mapping[str, str]) -> dict[str, str]:
    """The arguments of a run as text, without code and environment. `options` are those of its receipt."""
    commands = {f"{job} command": shown_command(own.command) for job, own in spec.jobs.items()}
    others = {name: _text(getattr(spec, field)) for field, name in _FIELDS.items() if name not in ("command", "code")}
    return {"command": shown_command(spec.command), **commands, **others, **flat_options(options)}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return text_of_number(value) if isinstance(value, float) else json.dumps(value)


def flat_options(options: Mapping[str, str]) -> dict[str, str]:
    """The arguments that the record does not have; those of a group as `ec2.instance_type`, those of a job as `jobs.worker.cpus`."""
    flat: dict[str, str] = {}
    for name, text in options.items():
        if name not in _IN_RECORD:
            group = _group(text)
            flat |= {name: text} if group is None else {f"{name}.{key}": str(value) for key, value in group.items()}
    for jobs in JOB_MAPPINGS:
        for job, own in (_group(options.get(jobs, "")) or {}).items():
            if isinstance(own, dict):
                flat |= {
                    f"{jobs}.{job}.{key}": str(value) for key, value in own.items() if key not in ("command", "env")
                }
    return flat


def _group(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _differing(older: Mapping[str, object], newer: Mapping[str, object]) -> list[str]:
    """The names that have another value, or are missing, in one of the two."""
    return [name for name in sorted({*older, *newer}) if older.get(name) != newer.get(name)]


def _changed_counts(older: Mapping[str, int], newer: Mapping[str, int]) -> list[str]:
    return [f"{older.get(name, 0)} -> {newer.get(name, 0)} {name}" for name in _differing(older, newer)]


_POLICIES = ("success", "worker_timeout", "evaluator_timeout", "stop_grace_period", "start_timeout", "elastic")
"""Arguments that can change within a run."""


def columns(rows: Sequence[StoredRun], is_of_all: bool) -> list[str]:
    """The columns of the table; the cluster's only where there are several, and the cost's only where one is known."""
    metrics = dict.fromkeys(metric_column(name) for row in rows for name in row.outcome.metrics)
    first = ["cluster"] if is_of_all else []
    last = ["cost"] if any(row.outcome.cost is not None for row in rows) else []
    return [*first, "run", "started", "took", "where", "changed", "result", *metrics, *last]


_STEP = re.compile(r"-(\d{1,15})$")


def checkpoint_step(name: str) -> int | None:
    """The step of a checkpoint, with which TensorFlow's names of checkpoints end: `model.ckpt-4200`."""
    match = _STEP.search(name)
    return int(match[1]) if match else None


def receipt_facts(
    spec: RunSpec, outcome: RunOutcome, receipt: Receipt | None, artifacts: Sequence[StoredArtifact] = ()
) -> dict[str, str]:
    """What a receipt has beside arguments and versions, by name; without what is not known."""
    commands = {f"command of {name}": shown_command(job.command) for name, job in spec.jobs.items() if job.command}
    steps = {item.name: checkpoint_step(item.name) for item in artifacts if item.kind == CHECKPOINT}
    checkpoints = [name if step is None else f"{name} (step {step:,})" for name, step in steps.items()]
    size = ""
    if spec.code and receipt is not None and receipt.code_files:
        size = f" ({counted(receipt.code_files, 'file')}, {text_of_size(receipt.code_bytes)})"
    facts = {
        "command": shown_command(spec.command),
        **commands,
        "tasks": counts_text(outcome.tasks),
        "machines": counts_text(receipt.machines) if receipt else "",
        "code": f"{spec.code}{size}",
        "checkpoint": ", ".join(checkpoints),
        "steps/s": speed_text(outcome),
        "cost": cost_text(outcome),
    }
    return {name: text for name, text in facts.items() if text}


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
