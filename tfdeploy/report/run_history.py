"""The runs in records as rows of a table: when, how long, where, what had changed, and how they ended. Pure."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..agent.control.elastic import optional_workers
from ..agent.model.run_spec import RunSpec
from ..agent.model.run_state import TENSORBOARD, RunState
from ..agent.model.task_command import shown_command
from ..agent.record.stored_artifact import CHECKPOINT, StoredArtifact
from ..units import moment, text_of_number
from .events import result_text
from .report import metric_text, metric_value, run_end, took

UNFINISHED = "unfinished"
"""The state of a run without a result that another run has replaced."""

OTHER_CONTENT = "image, run_id or a secret"
"""What else determines a run. The record does not have their values."""

_CONTENT = {
    **{name: name for name in ("command", "code", "requirements", "data_dir", "context", "resume_from", "flags")},
    "serve": "standalone_servers",
    "master": "tf_config_master",
}
"""Field of a run's specification to the argument that it is from, for those that determine a run."""

_POLICIES = {
    **{
        name: name for name in ("success", "worker_timeout", "evaluator_timeout", "start_timeout", "until", "artifacts")
    },
    "grace": "stop_grace_period",
    "max_workers": "elastic",
}
"""The same for those that can change within a run."""


@dataclass(frozen=True)
class StoredRun:
    """One run, as a record has it."""

    key: tuple[str, ...]
    """Which cluster it is of, with those before it: `registry.Entry.stack_key`."""
    cluster: str
    """The title of its cluster, which clusters of different logins share."""
    backend: str
    state: RunState
    metrics: Mapping[str, str | None]
    """Name to what its pattern has matched; None for nothing."""
    record: Path
    """The folder of its record."""
    speed: float | None = None
    """The last known speed, in steps per second."""
    now: str = ""
    """The state of the current run of a cluster that exists, as its report has it; empty for another run."""
    changed: tuple[str, ...] | None = None
    """What differs from the run before it of the same cluster, in `summaries`; None for the first run."""

    @property
    def spec(self) -> RunSpec:
        """What was submitted."""
        return self.state.spec

    @property
    def tasks(self) -> dict[str, int]:
        """Job to the number of its tasks."""
        return task_counts(self.state)

    @property
    def ended(self) -> float | None:
        """The end of its last task, in seconds since 1970; None while it runs."""
        if self.state.result is not None or self.now:
            return run_end(self.state) or None
        # The controller does not follow the tasks of a run that another run has replaced.
        return max([self.state.submitted_at, *(max(task.ended, task.seen) for task in self.state.training_tasks)])

    @property
    def result(self) -> str:
        """How it ended, or its present state."""
        return self.state.result.state if self.state.result else self.now or UNFINISHED

    def cells(self, now: float) -> dict[str, str]:
        """Its row in a table, with a column for each metric."""
        end = now if self.ended is None else self.ended
        has_warnings = any(task.end.killed or task.end.unstored for task in self.state.training_tasks if task.end)
        return {
            "cluster": self.cluster,
            "run": self.spec.id,
            "started": moment(self.state.submitted_at),
            "took": took(self.state, end),
            "where": self.backend,
            "changed": ", ".join(self.changed) or "-" if self.changed is not None else "first run",
            "result": f"{self.result}{' with warnings' if has_warnings else ''}",
            **{metric_column(name): metric_text(metric_value(text)) for name, text in self.metrics.items()},
        }

    def to_dict(self) -> dict[str, Any]:
        """Its document in JSON output."""
        return {
            "cluster": self.cluster,
            "backend": self.backend,
            "run": self.spec.id,
            "submitted_at": self.state.submitted_at,
            "ended_at": self.ended,
            "tasks": self.tasks,
            "changed": None if self.changed is None else list(self.changed),
            "current": bool(self.now),
            "result": self.result,
            "reason": result_text(self.state.result) if self.state.result else "",
            "metrics": {name: metric_value(text) for name, text in self.metrics.items()},
        }


_COLUMNS = ("cluster", "run", "started", "took", "where", "changed", "result", "tasks", "steps/s")


def metric_column(name: str) -> str:
    """The column of a metric, which may have the name of another column."""
    return f"metric {name}" if name in _COLUMNS else name


def summaries(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The runs, the newest first, each with what differs from the run before it."""
    before: dict[tuple[str, ...], StoredRun] = {}
    rows = []
    for run in sorted(runs, key=lambda run: run.state.submitted_at):
        earlier = before.get(run.key)
        rows.append(run if earlier is None else replace(run, changed=tuple(changes(earlier, run))))
        before[run.key] = run
    return rows[::-1]


def task_counts(state: RunState) -> dict[str, int]:
    """Job to the number of its tasks. A run that has ended has those it ran with, whatever later updates of the cluster have."""
    planned = Counter(task.job for task in state.spec.tasks)
    if state.result is None or not state.address_book:
        return dict(planned)
    absent = {name for name in optional_workers(state.spec) if name not in state.tasks or not state.tasks[name].started}
    trained = Counter(name.rpartition("-")[0].replace("-", "_") for name in state.address_book if name not in absent)
    return dict(trained | Counter({job: count for job, count in planned.items() if job == TENSORBOARD}))


def changes(older: StoredRun, newer: StoredRun) -> list[str]:
    """What differs between two runs: the names of arguments, `env LR` for a variable, `2 -> 3 worker` for a count. Other arguments are
    not in the record."""
    before, after = older.spec, newer.spec
    jobs = sorted({*before.jobs} & {*after.jobs})
    content = [name for key, name in _CONTENT.items() if getattr(before, key) != getattr(after, key)]
    content += [f"env {name}" for name in _differing(before.env, after.env)]
    for job in jobs:
        old, new = before.jobs[job], after.jobs[job]
        content += [f"{job} command"] if old.command != new.command else []
        content += [f"{job} env {name}" for name in _differing(old.env, new.env)]
    content += [f"secret {name}" for name in sorted({*before.secret_env} ^ {*after.secret_env})]
    if before.id != after.id and not content:
        content = [OTHER_CONTENT]
    policies = [name for key, name in _POLICIES.items() if getattr(before, key) != getattr(after, key)]
    policies += [f"{job} restart" for job in jobs if before.jobs[job].restart != after.jobs[job].restart]
    return [*content, *policies, *_changed_counts(older.tasks, newer.tasks)]


def argument_values(spec: RunSpec) -> dict[str, str]:
    """The arguments of a run as text, without code and environment."""
    commands = {f"{job} command": shown_command(own.command) for job, own in spec.jobs.items()}
    restarts = {f"{job} restart": _text(own.restart.to_dict()) for job, own in spec.jobs.items()}
    names = {key: name for key, name in (*_CONTENT.items(), *_POLICIES.items()) if key not in ("command", "code")}
    values = spec.to_dict()
    others = {name: _text(values[key]) for key, name in names.items()}
    return {"command": shown_command(spec.command), **commands, **others, **restarts}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return text_of_number(value) if isinstance(value, float) else json.dumps(value)


def _differing(older: Mapping[str, object], newer: Mapping[str, object]) -> list[str]:
    """The names that have another value, or are missing, in one of the two."""
    return [name for name in sorted({*older, *newer}) if older.get(name) != newer.get(name)]


def _changed_counts(older: Mapping[str, int], newer: Mapping[str, int]) -> list[str]:
    return [f"{older.get(name, 0)} -> {newer.get(name, 0)} {name}" for name in _differing(older, newer)]


def columns(rows: Sequence[StoredRun], is_of_all: bool) -> list[str]:
    """The columns of the table; the cluster's only where there are several."""
    metrics = dict.fromkeys(metric_column(name) for row in rows for name in row.metrics)
    return [*(["cluster"] if is_of_all else []), "run", "started", "took", "where", "changed", "result", *metrics]


_STEP = re.compile(r"-(\d{1,15})$")


def checkpoint_step(name: str) -> int | None:
    """The step of a checkpoint, with which TensorFlow's names of checkpoints end: `model.ckpt-4200`."""
    match = _STEP.search(name)
    return int(match[1]) if match else None


def run_facts(state: RunState, artifacts: Sequence[StoredArtifact] = ()) -> dict[str, str]:
    """What was submitted, and which checkpoint is stored, by name; without what there is none of."""
    spec = state.spec
    commands = {f"command of {name}": shown_command(job.command) for name, job in spec.jobs.items() if job.command}
    steps = {item.name: checkpoint_step(item.name) for item in artifacts if item.kind == CHECKPOINT}
    checkpoints = [name if step is None else f"{name} (step {step:,})" for name, step in steps.items()]
    facts = {
        "command": shown_command(spec.command),
        **commands,
        "tasks": counts_text(task_counts(state)),
        "code": spec.code,
        "checkpoint": ", ".join(checkpoints),
    }
    return {name: text for name, text in facts.items() if text}


def counts_text(counts: Mapping[str, int]) -> str:
    """Names with their numbers: `ps: 1, worker: 2`."""
    return ", ".join(f"{name}: {count}" if name else str(count) for name, count in counts.items())
