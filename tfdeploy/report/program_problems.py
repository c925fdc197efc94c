"""What is wrong with programs, from the last lines of their output: why they failed, which peers they wait for, and which metrics of
`until` are no numbers. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..agent.control.elastic import is_left_out, optional_workers
from ..agent.control.end_policy import end_of_time, is_worker, may_fail
from ..agent.model import run_state as states
from ..agent.model.deciding_tasks import WORKER_0, deciding_tasks
from ..agent.model.events import UNTIL_DISABLED, UNTIL_NO_NUMBER
from ..agent.model.run_state import RunState, TaskState
from ..agent.record.metric_values import number_in
from ..agent.record.record import StoredLine
from ..agent.record.terminal_text import shown_text
from ..backends.base import ObservedState
from ..units import named
from .events import exit_text
from .remedies import exit_remedy

SHOWN_LINES = 5
"""How many lines of a failure are shown."""

_READ_LINES = 20
"""How many of the last lines, without noise, are searched for a remedy."""

_STDERR = 2
_MAX_NAMES = 3


def _logged(severity: str) -> str:
    """A pattern for the begin of a line that TensorFlow's C++ code logs, in its own form or in that of absl."""
    return rf"(?:\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: {severity}|{severity}\d{{4}} \d\d:\d\d:\d+\.\d+)\s"


_STARTUP = "register cu|register factory|omputation placer|cuda_|cuInit|TF-TRT|libcu|libnvinfer|GPU|gpu"
_HARMLESS = "dataset|auto_shard|cpu_allocator|End of sequence|OUT_OF_RANGE|grappler|allocator_impl"
_NOISE = "|".join(
    (
        _logged("I"),
        rf"{_logged('[WE]')}.*(?:{_STARTUP})",
        rf"{_logged('W')}.*(?:{_HARMLESS})",
        r".*oneDNN custom operations are on",
        r"WARNING:absl:|WARNING:tensorflow:AutoGraph",
        r"Additional GRPC error information from remote target|/job:\w+/replica:\d+/task:\d+\S*\s*$",
        r"WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR",
        r"To enable (?:the following instructions|them in other operations)",
        r"(?:WARNING:tensorflow:)?From .* is deprecated|Instructions for updating:",
        r"During handling of the above exception|The above exception was the direct cause",
    )
)
"""What TensorFlow prints at each start, and other lines that do not explain why a program failed."""

_LOG_LINE = re.compile(_logged("[IWE]"))
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):|  File \"")
_FRAME = re.compile(r'\s+File "(?P<path>[^"<]+)", line (?P<line>\d+)')
LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib\d*/python[\d.]*/")
"""Where a frame is not in the user's program."""

_WARNING = r"^\S+:\d+: \w*Warning: .*\n(?:  .*\n)?"
"""A warning of Python; the next line may be the line of its source."""

_UNUSED = r"^(?:ERROR:tensorflow:|E\d{4} .*\btf_should_use\.py:\d+\] )=+\n(?:(?!=+$|Traceback ).*\n)*(?:=+\n)?"
"""At its exit TensorFlow prints `Object was never used`, and where that was created: it has frames, and looks like a traceback."""

_UNRAISABLE = re.compile(r"Exception ignored ")
_ERROR = re.compile(
    rf"\S+: error: |FATAL |Fatal |[Ee]rror: |tfdeploy: |terminate called|Segmentation fault|{_logged('F')}"
)
"""The line of an error where there is no traceback: of argparse, absl, click, tfdeploy or C++."""

_ERROR_WORD = re.compile(r"\b\w*(?:error|exception)\b", re.IGNORECASE)
"""In a line of a program that has succeeded."""

_LONGEST_LINE = 200
"""So many characters of such a line are shown."""


RECORD = "record"
"""What a finding about the record is about."""


class Finding(NamedTuple):
    """One or two sentences about a task, a machine, or the cluster."""

    about: str
    """The name of the task or machine, or `RECORD`; empty for the cluster."""
    text: str
    remedy: str = ""
    lines: Sequence[str] = ()
    """The last lines of the task's output."""
    wrong: bool = True
    """Whether it is a problem."""

    @property
    def sentences(self) -> str:
        """What is wrong, and what to do."""
        return f"{self.text} {self.remedy}".rstrip()


def is_noise(text: str) -> bool:
    """Whether a line is one of those that TensorFlow prints at each start."""
    return re.match(_NOISE, text) is not None  # compiled at the first call: that takes as long as importing ten modules


def failure_of(task: TaskState, observed: ObservedState) -> Finding:
    """A task that failed, in the words of its program: of its stderr, or of all of its output if its stderr has only noise. The line of
    the exception or error is the first, then come the last other lines."""
    printed = observed.view.logs.get(task.hostname, [])
    read = _read(line for line in printed if line.pipe == _STDERR)
    if not any(_parts(read)):
        read = _read(printed)
    error, others = _parts(read)
    where = _where(read)
    if not error and not others:
        others = [text for text in read if text.strip()]
    shown = [*error, *others[-(SHOWN_LINES - len(error)) :]]
    place = f" in {where}" if where and error else ""
    text = f"{task.hostname} {_how_it_failed(task)}{place}.{_without_it(task, observed.view.run_state)}"
    return Finding(task.hostname, text, exit_remedy(task, [*error, *others[-_READ_LINES:]]), shown)


def _how_it_failed(task: TaskState) -> str:
    if task.state == states.OUT_OF_MEMORY:
        return "ran out of memory"
    return f"was killed by {task.signal}" if task.signal else f"failed with exit code {task.exit_code}"


def _without_it(task: TaskState, run: RunState | None) -> str:
    """That the training continues, and how the task starts again; empty where it does not."""
    if run is None or run.result is not None or not may_fail(run, task):
        return ""
    again = f"; `tfdeploy restart {task.hostname}` starts it again" if is_left_out(run, task) else ""
    return f" The training continues without it{again}."


def failures(observed: ObservedState) -> list[Finding]:
    """The tasks that failed in a failed run: those that decided its result first, then training tasks, each in the order of time."""
    run = observed.view.run_state
    if run is None or run.result is None or run.result.state not in states.DEAD:
        return []
    deciding = run.result.tasks
    failed = [task for task in run.tasks.values() if task.state in states.DEAD]
    failed.sort(key=lambda task: (task.hostname not in deciding, task.is_auxiliary, task.ended))
    return [failure_of(task, observed) for task in failed]


def _read(lines: Iterable[StoredLine]) -> list[str]:
    """The texts of lines, without Python's warnings and TensorFlow's unused objects."""
    text = "".join(f"{shown_text(line.text).rstrip()}\n" for line in lines)
    return re.sub(f"{_WARNING}|{_UNUSED}", "", text, flags=re.MULTILINE).splitlines()


def _where(texts: Sequence[str]) -> str:
    """The innermost frame of the last traceback that is in the user's program: `train.py, line 9`; empty without one."""
    where = ""
    for text in texts:
        if text.startswith("Traceback "):
            where = ""
        elif (frame := _FRAME.match(text)) and not LIBRARY.search(frame["path"]):
            where = f"{frame['path'].rpartition('/')[2]}, line {frame['line']}"
    return where


def _parts(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """The line of the exception or error, if there is one, and the other lines, without noise and the frames of tracebacks."""
    others: list[str] = []
    error = -1
    in_traceback = is_ignored = is_exception = False
    for text in texts:
        if _TRACEBACK.match(text):
            in_traceback = True
        elif in_traceback and (not text.strip() or text.startswith("  ")):
            continue
        elif in_traceback and (_LOG_LINE.match(text) or is_noise(text)):
            others += [] if is_noise(text) else [text]  # a thread of TensorFlow's prints at the same time
        elif in_traceback:
            in_traceback = False
            if not is_ignored:
                error, is_exception = len(others), True
                others.append(text)
            is_ignored = False
        elif _UNRAISABLE.match(text):
            is_ignored = True
        elif text.strip() and not is_noise(text):
            if _ERROR.match(text) and not is_exception:
                error = len(others)
            others.append(text)
    return ([others[error]], others[:error] + others[error + 1 :]) if error >= 0 else ([], others)


def program_problems(observed: ObservedState) -> list[Finding]:
    """What is wrong beside failures: tasks that wait for a peer, and metrics of `until` that the controller cannot compare; after the
    success, workers that have printed no step, and a checkpoint that was not evaluated."""
    run, findings = observed.view.run_state, list[Finding]()
    if run is None:
        return findings
    if run.result is None:
        findings = _session_waits(run, observed)
    elif run.result.state == states.SUCCEEDED:
        findings = [*_without_steps(run, observed), *_not_evaluated(run)]
    return [*findings, *_until_problems(observed)]


def warnings(observed: ObservedState) -> list[Finding]:
    """What `status` prints too: machines that do not respond, a record that is lost with its machine, and what a run has lost."""
    record = [Finding(RECORD, observed.not_stored)] if observed.not_stored else []
    return [*_waits_for_machines(observed), *record, *_lost_with_success(observed)]


def _lost_with_success(observed: ObservedState) -> list[Finding]:
    """What a run has lost although it has succeeded."""
    run, findings = observed.view.run_state, list[Finding]()
    if run is None or run.result is None or run.result.state != states.SUCCEEDED:
        return findings
    ended = [(task, task.end) for task in run.training_tasks if task.end]
    killed = [task for task, end in ended if end.killed]
    if killed:
        commands = next(end.killed for _, end in ended if end.killed)
        text = f"{_names(killed)} left processes behind, which were killed: {', '.join(commands)}."
        findings.append(Finding("", text, "Use `exec`, or no `&`: a command ends with its first process."))
    unstored = [task for task, end in ended if end.unstored]
    if unstored:
        files = ", ".join(next(end.unstored for _, end in ended if end.unstored))
        text = f"{_names(unstored)} wrote {files} to the working directory, which is not stored: it will be deleted."
        findings.append(Finding("", text, "Let the program save models to the folder in `TFDEPLOY_TRAIN_DIR`."))
    if observed.view.unprinted:
        names = named(observed.view.unprinted, _MAX_NAMES)
        text = f"No line matches the pattern of {names} in `metrics`.{_last_error(run, observed)}"
        findings.append(Finding("", text, "Correct the pattern, or let the program print the metric."))
    return findings


def _names(tasks: Sequence[TaskState]) -> str:
    return named([task.hostname for task in tasks], _MAX_NAMES)


def _last_error(run: RunState, observed: ObservedState) -> str:
    """The last line with an error of the first task that has printed one; empty if there is none."""
    for task in run.training_tasks:
        for line in reversed(observed.view.logs.get(task.hostname, [])):
            if _ERROR_WORD.search(line.text) and not is_noise(line.text):
                return f' {task.hostname} printed "{shown_text(line.text)[:_LONGEST_LINE].strip()}".'
    return ""


# A session without device filters asks each task of its cluster to respond before it begins, and logs this line every 10 s:
# https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/distributed_runtime/master.cc
_WAIT = re.compile(
    r"CreateSession still waiting for response from worker: /job:(?P<job>\w+)/replica:\d+/task:(?P<index>\d+)"
)
_LEAST_LINES = 3
"""So many such lines for one peer before a peer that still runs is named."""

_LONGEST_VALUE = 40
"""So many characters of a metric's value are shown."""


def _session_waits(run: RunState, observed: ObservedState) -> list[Finding]:
    """The running tasks that print nothing but that their session waits for a peer."""
    findings = []
    for task in [task for task in run.training_tasks if task.state == states.RUNNING]:
        awaited = Counter[str]()
        for line in reversed(observed.view.logs.get(task.hostname, [])):
            if match := _WAIT.search(line.text):
                awaited[_peer(run, match["job"], int(match["index"]))] += 1
            elif line.text.strip():
                break
        peers = {name: run.tasks[name].state if name in run.tasks else "not there" for name in awaited if name}
        for name, state in peers.items():
            if state in (*states.FINAL, "not there") or awaited[name] >= _LEAST_LINES:
                findings.append(_session_wait(task, name, state))
                break
    return findings


def _session_wait(task: TaskState, peer: str, state: str) -> Finding:
    own = f"/job:{'worker' if task.job in states.WORKERS else task.job}/task:{task.index}"
    session = f'`config=tf.compat.v1.ConfigProto(device_filters=["/job:ps", "{own}"])`'
    text = f"{task.hostname} waits for {peer} ({state}), which does not respond to its session."
    return Finding(task.hostname, text, f"In the program, create the session with {session}.")


def _peer(run: RunState, job: str, index: int) -> str:
    """The task that TensorFlow knows by this job and index; empty for none."""
    if f"{job}-{index}" in optional_workers(run.spec):
        return f"{job}-{index}"
    jobs = {"worker": states.WORKERS, "master": ("chief",)}.get(job, (job,))
    names = [task.hostname for name in jobs for task in run.training_tasks if task.job == name]
    return names[index] if index < len(names) else ""


def _without_steps(run: RunState, observed: ObservedState) -> list[Finding]:
    """The workers that were stopped at the end of their time and have printed no step, unlike a task that decided the success."""
    stepped = {name for name, progress in observed.view.progress.items() if progress.step is not None}
    findings = []
    deciding = [task.hostname for task in deciding_tasks(run)] if run.spec.success == WORKER_0 else []
    if not stepped.intersection(deciding):
        return []
    for task in run.training_tasks:
        name = task.hostname
        if name not in stepped and is_worker(run, task) and _ran_too_long(run, task):
            text = f"{name} was stopped at the end of its `worker_timeout`, and has printed no step."
            remedy = f"If it should train, it began too late, or its session waited for another task: `tfdeploy logs {name}`."
            findings.append(Finding(name, text, remedy, wrong=False))
    return findings


def _ran_too_long(run: RunState, task: TaskState) -> bool:
    """Whether it was stopped at the end of the time that it had after the end of the run."""
    return task.state == states.STOPPED and task.ended >= end_of_time(run, task)


def _not_evaluated(run: RunState) -> list[Finding]:
    """The evaluator that failed after the success of the run, or did not end in its time."""
    findings = []
    for task in [task for task in run.training_tasks if task.job == states.EVALUATOR]:
        is_late = run.spec.evaluator_timeout > 0 and _ran_too_long(run, task)
        if run.result is not None and task.since >= run.result.at and (task.state in states.DEAD or is_late):
            how = "still ran at the end of its `evaluator_timeout`" if is_late else f"failed ({exit_text(task.end)})"
            text = f"{task.hostname} {how}: the last checkpoint may not be evaluated."
            findings.append(Finding(task.hostname, text, f"Its output: `tfdeploy logs {task.hostname}`.", wrong=False))
    return findings


def _waits_for_machines(observed: ObservedState) -> list[Finding]:
    """The machines that do not respond, whose tasks start elsewhere only when somebody confirms the end of their programs."""
    run, findings = observed.view.run_state, []
    if run is None or run.result is not None:
        return []
    open_tasks = [task for task in run.tasks.values() if task.state not in states.FINAL]
    for machine, remedy in observed.machines.remedies.items():
        names = [task.hostname for task in open_tasks if task.report.machine == machine]
        if names:
            waiting, programs = ("waits", "its program") if len(names) == 1 else ("wait", "their programs")
            text = f"{machine} is {observed.machines.status(machine)}, and {named(names, _MAX_NAMES)} {waiting} for it:"
            findings.append(Finding(machine, f"{text} {programs} may still run there.", remedy))
    return findings


def _until_problems(observed: ObservedState) -> list[Finding]:
    """The metrics of `until` that the controller could not compare in this run, and still cannot."""
    run = observed.view.run_state
    if run is None or (run.result is not None and run.result.cause == states.UNTIL):
        return []
    problems = []
    for metric in [condition.metric for condition in run.spec.until]:
        value = observed.view.metrics.get(metric)
        if f"{UNTIL_DISABLED} {metric}" in run.until_problems:
            text = f"`until` does not see new values of {metric}: its pattern takes too long in the output."
            remedy = "Give `metrics` a pattern without nested repetitions."
        elif f"{UNTIL_NO_NUMBER} {metric}" in run.until_problems and value is not None and number_in(value) is None:
            shown = repr(shown_text(value)[:_LONGEST_VALUE])
            text = f"`until` cannot compare {metric}: its last value {shown} is not a number."
            remedy = f"Let its pattern in `metrics` capture the number alone, as `{metric}: ([0-9.]+)` does."
        else:
            continue
        problems.append(Finding("", text, remedy, wrong=run.result is None))
    return problems
