"""Events become sentences. This is the only place that does so; no code reads a sentence. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..agent.model import events
from ..agent.model import run_state as states
from ..agent.model.events import Event
from ..agent.model.run_state import Ended, ReachedMetric, RunResult
from ..agent.record import stored_artifact as artifacts
from ..units import dollars, moment, named, text_of_number, text_of_seconds, text_of_size

_NAMED = 3
"""So many artifacts are named in a sentence."""

_AT_MOST = f"a run stores at most {text_of_size(artifacts.MAX_BYTES)} in {artifacts.MAX_FILES} files"
_THERE = "It is still in `train_dir`"

REASONS = {
    artifacts.LIMIT: f"{_AT_MOST}. {_THERE}; `artifacts` chooses what is stored",
    artifacts.CHANGED: f"it changed while it was uploaded. {_THERE}",
    artifacts.UNREADABLE: f"the task may not read it. {_THERE}; set `container.user`, or have the program write it with another mode",
    artifacts.OUTSIDE: "it has a link to a file outside of `train_dir`. Have the program copy that file",
    artifacts.NO_MATCH: "the pattern names no file below `train_dir`",
    artifacts.BAD_NAME: f"the name of one of its files is longer than 255 bytes, or is not UTF-8. {_THERE}",
    artifacts.DISK_FULL: f"the controller could not write it to its disk. {_THERE}; make room there before the next run",
    artifacts.WRONG_HASH: f"it arrived damaged, again and again. {_THERE}",
    artifacts.OTHER_MACHINE: f"another machine has a file of the same name, which is stored. {_THERE}",
    artifacts.CLUSTER_LIMIT: "a cluster stores the artifacts of its newest runs only",
    artifacts.RUN_LIMIT: f"{_AT_MOST}, and a later upload needed its room",
    artifacts.NOT_COPIED: "it was not on this computer yet when the run moved, and the place that had it did not respond",
}
"""Why something was not stored, and what to do."""


def reason_text(reason: str) -> str:
    """Why something was not stored, and what to do."""
    return REASONS.get(reason, reason)


def exit_text(exit_: Ended | None) -> str:
    """How a program ended: `exit 3`, `SIGKILL`, `out of memory`."""
    if exit_ is None:
        return ""
    return states.OUT_OF_MEMORY if exit_.out_of_memory else exit_.signal or f"exit {exit_.code}"


def restart_text(delay: float, failures: int, max_failures: int) -> str:
    """When a task restarts: `in 5 s (2 of 3)`."""
    when = f"in {text_of_number(delay)} s" if delay else "now"
    return f"{when} ({failures} of {max_failures})"


def result_text(result: RunResult) -> str:
    """Why a run ended: `worker-0 failed (exit 3)`."""
    names = ", ".join(result.tasks)
    if result.cause == states.TASK_FAILED and result.exit is not None:
        how = exit_text(result.exit)
        if result.exit.out_of_memory:
            return f"{names} ran {how}"
        return f"{names} {'failed' if result.exit.state == states.FAILED else 'was killed'} ({how})"
    texts = {
        states.STARTUP_TIMEOUT: f"{names} did not start within {text_of_number(result.seconds)} s",
        states.LAUNCHERS_LOST: f"the launcher of {names} was lost {result.count} times in a row",
        states.ENDED_EARLY: f"{names} ended before its workers",
        states.DECIDERS_REMOVED: f"the run cannot succeed without {names}, which {'were' if ', ' in names else 'was'} removed",
        states.TIME_LIMIT: f"after its time limit of {text_of_seconds(result.seconds)}",
        states.MOVED: states.TO_MOVE,
    }
    if result.cause in texts:
        return texts[result.cause]
    if result.cause == states.BUDGET:
        rest = ", and the rest is for the time until they terminate themselves" if result.spent < result.budget else ""
        return f"its machines have cost {dollars(result.spent)} of the budget of {dollars(result.budget)}{rest}"
    if result.cause == states.UNTIL:
        return " and ".join(map(_reached_text, result.reached))
    return f"{names} succeeded" if result.state == states.SUCCEEDED else states.BY_REQUEST


def _reached_text(metric: ReachedMetric) -> str:
    """How a condition of `until` held: `accuracy 0.953 reached >= 0.95 at step 4,200`."""
    step = "" if metric.step is None else f" at step {metric.step:,}"
    value, threshold = text_of_number(metric.value), text_of_number(metric.threshold)
    if value == threshold:  # they differ, or are equal, in digits that are not shown
        value, threshold = repr(metric.value), repr(metric.threshold)
    return f"{metric.metric} {value} reached {metric.comparison} {threshold}{step}"


def describe(event: Event) -> tuple[str, str]:
    """What happened, and why; the second is empty if there is nothing to add."""
    if event.kind == events.RUN_ENDED and event.result is not None:
        return f"run {event.result.state}", result_text(event.result)
    if event.kind in (events.TASK_FAILED, events.TASK_RESTARTING):
        when = f"restarting {restart_text(event.delay, event.failures, event.max_failures)}"
        return exit_text(event.exit), "not restarted" if event.kind == events.TASK_FAILED else when
    if event.kind == events.TASK_STARTED:
        return ("started", "") if event.attempt == 1 else ("restarted", f"attempt {event.attempt}")
    names, stored = ", ".join(event.tasks), named(event.artifacts, _NAMED)
    words = {
        events.RECORD_RESTORED: ("record restored", f"its copy is {text_of_seconds(event.delay)} old"),
        events.STEPS_STOPPED: (f"no step for {text_of_seconds(event.delay)}", ""),
        events.STOP_REQUESTED: (f"{names or 'TensorBoard'} stopped", event.reason or states.BY_REQUEST),
        events.LAUNCHER_REUSED: ("launcher registered", "it had prepared another run"),
        events.LAUNCHER_LOST: ("lost", "its container, process or machine is gone"),
        events.BARRIER_PASSED: ("all tasks ready", names),
        events.ADDRESS_CHANGED: ("an address has changed", "all tasks restart"),
        events.TASKS_CHANGED: (f"the tasks are now {names}", "all tasks restart"),
        events.WORKERS_CHANGED: (f"the tasks are now {names}", "no restart"),
        events.TASK_SUCCEEDED: ("succeeded", ""),
        events.TASK_INTERRUPTED: ("interrupted", event.reason),
        events.TASK_STOPPED: ("stopped", event.reason),
        events.TASK_REMOVED: ("removed", ""),
        events.RESTART_REQUESTED: ("restarting", states.BY_REQUEST),
        events.REPLACE_REQUESTED: ("replacing", states.BY_REQUEST),
        events.SETTINGS_CHANGED: ("restarting", "its settings have changed"),
        events.TASK_WAITED: (f"waited for {names}", f"{event.delay:.1f} s"),
        events.ENGINE_STATE: (event.state, event.reason),
        events.TASK_LOST: ("lost", f"its launcher on {event.machine} is gone"),
        events.RECORD_DAMAGED: (f"unreadable parts of the record were skipped: {event.count}", event.reason),
        events.RECORD_DELAYED: (f"the record could not be written for {event.delay:.0f} s", _dropped(event)),
        events.LAUNCHER_PROBLEM: ("tries again", event.reason),
        events.OUTPUT_DROPPED: (f"{event.count} bytes of its output were dropped", "its disk was full"),
        events.OUTPUT_APART: ("its former launcher has sent other output", "it is stored apart"),
        events.OUTPUT_LIMIT: ("the beginning of its output is deleted", "the newest 1 GiB is stored"),
        events.PATTERN_SLOW: (f"some lines were not searched for the metric {event.state}", event.reason),
        events.PATTERN_DISABLED: (f"the metric {event.state} is switched off", event.reason),
        events.UNTIL_DISABLED: (f"`until` does not see new values of {event.state}", event.reason),
        events.UNTIL_NO_NUMBER: (f"`until` ignores {event.state} as long as it is not a number", event.reason),
        events.ARTIFACTS_BEGUN: (f"uploads {stored}", ""),
        events.ARTIFACTS_STORED: (f"uploaded {stored}", text_of_size(event.count)),
        events.ARTIFACT_LEFT_OUT: (f"did not upload {stored} ({text_of_size(event.count)})", reason_text(event.reason)),
        events.ARTIFACTS_LOST: (f"models and checkpoints on {event.machine} were not uploaded", _lost(event)),
        events.ARTIFACTS_REMOVED: (f"deleted artifacts of earlier runs: {stored}", REASONS[artifacts.CLUSTER_LIMIT]),
        events.PROCESSES_KILLED: ("left processes behind, which were killed", ", ".join(event.commands)),
        events.MODELS_NOT_STORED: (f"did not store {stored}", "the working directory is not stored"),
        events.MACHINE_LOST: ("machine lost", f"{event.machine} is {event.state}"),
    }
    return words.get(event.kind, (event.kind.replace("_", " "), event.reason))


def _lost(event: Event) -> str:
    if event.delay:
        return f"the launcher did not respond for {text_of_seconds(event.delay)}"
    return event.reason or "that took too long"


def _dropped(event: Event) -> str:
    dropped = f", and {event.count} events were dropped" if event.count else ""
    return event.reason + dropped


def stopped_steps(happened: Sequence[Event]) -> str:
    """That the run had made no step for long when its last event about its steps happened; empty where it makes steps."""
    kinds = (events.STEPS_STOPPED, events.STEPS_CONTINUED)
    last = next((event for event in reversed(happened) if event.kind in kinds), None)
    if last is None or last.kind == events.STEPS_CONTINUED:
        return ""
    return f"At {moment(last.at)} no task had made a step for {text_of_seconds(last.delay)}."


def sentence(event: Event) -> str:
    """An event in one line, without its time."""
    what, why = describe(event)
    return " ".join(filter(None, [event.task, what])) + (f": {why}" if why else "")


def document(event: Event) -> dict[str, Any]:
    """An event for `--json`: its data, and its sentence."""
    data = event.to_dict()
    if event.exit is not None:
        data["exit"] = _exit_document(event.exit)
    if event.result is not None:
        own = {"exit": event.result.exit and _exit_document(event.result.exit), "reason": result_text(event.result)}
        data["result"] = {**asdict(event.result), **own}
    required = ["at", "kind", "task", "attempt", "reason"]
    if event.kind == events.TASK_RESTARTING:
        required.append("delay")  # a first restart has 0
    return {**{name: getattr(event, name) for name in required}, **data, "sentence": sentence(event)}


def _exit_document(end: Ended) -> dict[str, Any]:
    return {"code": end.code, "signal": end.signal, "out_of_memory": end.out_of_memory}


def with_waits(happened: Iterable[Event]) -> list[Event]:
    """The events, oldest first, with how long each task waited for the last one at the start barrier."""
    timeline: list[Event] = []
    registered: dict[str, float] = {}
    for event in happened:
        if event.kind == events.BARRIER_PASSED:
            timeline += _waits({name: registered[name] for name in event.tasks if name in registered}, event.at)
        timeline.append(event)
        if event.kind == events.LAUNCHER_REGISTERED:
            registered[event.task] = event.at
        if event.kind in (events.BARRIER_PASSED, events.ADDRESS_CHANGED, events.TASKS_CHANGED):
            registered = {}
    return timeline


def _waits(registered: Mapping[str, float], at: float) -> Sequence[Event]:
    last = max(registered, key=lambda name: registered[name], default="")
    return [
        Event(events.TASK_WAITED, at, name, tasks=[last], delay=at - since)
        for name, since in registered.items()
        if name != last
    ]
