"""What must be true after a round. Each invariant is a function of an observation: what is wrong, a sentence each. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.chaos.oracle import Sample, Touch, one_process_each, untouched_programs_train
from tests.chaos.training import STEPS, Ledger, Note

_TRACEBACK = "Traceback (most recent call last)"
_ERRORS_OF_PYTHON = re.compile(f"{re.escape(_TRACEBACK)}|tfdeploy: internal error")
# Pulumi prints the error of a dynamic provider with its traceback; the last line of one of these is a sentence for the user.
_EXPECTED_ERROR = "tfdeploy.errors."
_ERROR_LINE = re.compile(
    r"^ *((?:\w+\.)+[A-Z]\w+|[A-Z]\w*(?:Error|Exception|Iteration|Exit|Interrupt))(?::|$)", re.MULTILINE
)
START = re.compile(rb"start ([0-9a-f]{32}) from ")


@dataclass(frozen=True)
class RunAccount:
    """What the record says of one run, in the cluster's record or in one that a `destroy` has retained."""

    state: str
    """Its result; empty while it is open."""
    cause: str = ""
    events: Sequence[Mapping[str, object]] = ()
    """As the record has them; damaged lines are left out."""
    streams: Mapping[str, bytes] = field(default_factory=dict)
    """Hostname to stdout."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Hostname to the bytes that events count as dropped."""
    artifacts: Sequence[str] = ()
    """The names of those that are complete."""
    attempts: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    """Hostname to the programs whose first lines its log has, in order: the start, and the attempt to which the index assigns it."""


@dataclass(frozen=True)
class Observation:
    """What a round has left."""

    ledger: Ledger
    runs: Sequence[RunAccount]
    """Oldest first; the last one is the current run's."""
    seconds: float = 0.0
    """From the end of the last fault to the end of the run, or to the deadline."""
    shown: str = ""
    """The state that `tfdeploy status` prints at the end."""
    reason: str = ""
    """What it prints about that."""
    stored: Sequence[tuple[str, str, int]] = ()
    """Before a task's launcher was killed: the task, the start that its disk had last, and how many of its bytes."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Command to what it printed."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Commands that must succeed, and did not, to their output."""
    left: Sequence[str] = ()
    """What is left of the cluster after `destroy`."""
    destroy_failed: bool = False
    """Whether a `destroy` was killed or failed: it may have stopped the run, and a stopped run stays stopped."""
    neighbour: Sequence[str] = ()
    """How the cluster beside it has changed without its owner's doing."""
    samples: Sequence[Sample] = ()
    touches: Sequence[Touch] = ()


def the_run_ends(seen: Observation) -> Iterator[str]:
    """Each fault of a round can be survived, so that the run succeeds, unless an interrupted `destroy` has stopped it; and
    `tfdeploy status` reports what the record has."""
    last = seen.runs[-1] if seen.runs else None
    if last is None:
        yield "there is no record of a run"
    elif last.state != "succeeded" and not (seen.destroy_failed and last.cause == "stop_requested"):
        state = (
            f"{last.state} ({last.cause})"
            if last.state
            else f"open, and shown as {seen.shown or 'nothing'}: {seen.reason}"
        )
        yield f"{seen.seconds:.0f} s after the last fault the run is {state}"
    elif seen.shown != last.state:
        yield f"the run has {last.state}, and `tfdeploy status` prints {seen.shown!r}: {seen.reason}"


def steps_never_go_back(seen: Observation) -> Iterator[str]:
    """A program begins at the last checkpoint that its folder has, or after it."""
    saved: dict[tuple[str, str], int] = {}
    folders: dict[str, str] = {}
    for note in seen.ledger.notes:
        if note.kind == "storage_lost":
            saved = {key: step for key, step in saved.items() if note.task not in ("*", key[0])}
        elif note.kind == "start":
            folders[note.start] = note.train_dir
            least = saved.get((note.task, note.train_dir), 0)
            if note.first < least:
                yield f"{note.task} began at step {note.first}, and its last checkpoint was of step {least}"
        elif note.kind == "checkpoint":
            saved[note.task, folders[note.start]] = note.step


def it_trains_once(seen: Observation) -> Iterator[str]:
    """Success is reported once, nothing is trained after it, and a task never has two programs at once."""
    for run in seen.runs:
        ends = [event for event in run.events if event.get("kind") == "run_ended"]
        if len(ends) > 1:
            yield f"the end of a run was reported {len(ends)} times"
        yield from _trained_after_success(run)
    ended: dict[tuple[str, str], str] = {}
    running: dict[str, Note] = {}
    for note in seen.ledger.notes:
        where = running[note.task].train_dir if note.task in running else ""
        if note.kind == "storage_lost":
            ended = {key: start for key, start in ended.items() if note.task not in ("*", key[0])}
        elif note.kind == "start":
            running[note.task] = note
            if ended.get((note.task, note.train_dir)) and note.first < STEPS:
                yield f"{note.task} had finished, and trains again from step {note.first}"
        elif note.kind == "twin":
            yield f"{note.task} had another program when {note.start} began"
        elif note.kind in ("checkpoint", "end") and running[note.task].start != note.start:
            yield f"{note.task} had two programs at once: {note.start} and {running[note.task].start}"
        elif note.kind == "end" and note.code == 0:
            ended[note.task, where] = note.start


def training_goes_on(seen: Observation) -> Iterator[str]:
    """Samples show that what no fault touches trains, and that no task has two processes."""
    ended = {note.start for note in seen.ledger.notes if note.kind == "end"}
    yield from untouched_programs_train(seen.samples, seen.touches, ended)
    yield from one_process_each(seen.samples)


def attempts_are_counted(seen: Observation) -> Iterator[str]:
    """In a run each program of a task has an attempt of its own, greater than the one before."""
    for run in seen.runs:
        for task, starts in run.attempts.items():
            for (before, first), (after, second) in pairwise(starts):
                if second <= first:
                    yield f"{task}: {before[:6]} is attempt {first}, and {after[:6]} after it is attempt {second}"


def _trained_after_success(run: RunAccount) -> Iterator[str]:
    succeeded: set[object] = set()
    for event in run.events:
        task = event.get("task")
        if event.get("kind") in ("task_succeeded", "task_started") and task in succeeded:
            yield f"{task} had succeeded, and then {event['kind']} was reported"
        if event.get("kind") == "task_succeeded":
            succeeded.add(task)


def lines_are_recorded(seen: Observation) -> Iterator[str]:
    """What a program printed is in the record, byte for byte, unless what had not been sent was lost with its launcher."""
    streams: dict[str, bytes] = {}
    dropped: dict[str, int] = {}
    for run in seen.runs:
        for task, stream in run.streams.items():
            streams[task] = streams.get(task, b"") + stream
        for task, count in run.dropped.items():
            dropped[task] = dropped.get(task, 0) + count
    starts = [_printed(seen.ledger, *start) for start in _starts(seen.ledger.notes)]
    for task in dict.fromkeys(start.task for start in starts):
        own = [start for start in starts if start.task == task]
        stream = streams.get(task, b"")
        yield from _recorded_but(dropped[task], own, stream) if dropped.get(task) else _recorded(own, parts(stream))
    for task, name, count in seen.stored:
        part = parts(streams.get(task, b"")).get(name, b"")
        if len(part) + dropped.get(task, 0) < count:
            yield f"start {name[:6]} of {task}: its disk had {count} bytes, and the record has {len(part)}"


@dataclass(frozen=True)
class _Printed:
    """What one program has printed."""

    task: str
    start: str
    data: bytes
    least: int
    """So many of its bytes must be in the record."""


def _printed(ledger: Ledger, note: Note, is_cut: bool, has_ended: bool) -> _Printed:
    data = ledger.printed.get(note.start, b"")
    # Of a program that was killed, the last line may be in its copy alone.
    sent = len(data) if has_ended else len(data.rpartition(b"\n")[0].rpartition(b"\n")[0])
    return _Printed(note.task, note.start, data, 0 if is_cut else sent)


def _recorded(starts: Sequence[_Printed], recorded: Mapping[str, bytes]) -> Iterator[str]:
    for start in starts:
        name, part = f"start {start.start[:6]} of {start.task}", recorded.get(start.start, b"")
        if not start.data.startswith(part):
            yield f"{name}: byte {_difference(start.data, part)} of {len(start.data)} is another in the record"
        elif len(part) < start.least:
            yield f"{name}: the record has {len(part)} of {len(start.data)} bytes, and no event counts the others"


def _recorded_but(dropped: int, starts: Sequence[_Printed], stream: bytes) -> Iterator[str]:
    """Where bytes were dropped, also the line may be missing with which a program begins: so all starts together."""
    whole, least = b"".join(start.data for start in starts), sum(start.least for start in starts)
    if not _is_thinned(stream, whole):
        yield f"{starts[0].task}: the record has bytes that were not printed, or in another order"
    elif len(stream) + dropped < least:
        yield f"{starts[0].task}: the record has {len(stream)} of {least} bytes, and events count {dropped}"


def parts(stream: bytes) -> dict[str, bytes]:
    """A task's stdout, cut where a program begins: start to its bytes."""
    places = [*START.finditer(stream)]
    ends = [*(place.start() for place in places[1:]), len(stream)]
    return {place[1].decode(): stream[place.start() : end] for place, end in zip(places, ends, strict=False)}


def _starts(notes: Sequence[Note]) -> Iterator[tuple[Note, bool, bool]]:
    """Each start, whether what it had not sent may be lost, and whether it ended by itself."""
    for place, note in enumerate(notes):
        if note.kind == "start":
            later = notes[place + 1 :]
            following = next(
                (n for n, other in enumerate(later) if other.kind == "start" and other.task == note.task), len(later)
            )
            # What follows the next start of the task can only have cut that one.
            own = later[: following + 1]
            is_cut = any(other.kind == "cut" and other.task in ("*", note.task) for other in own)
            yield note, is_cut, any(other.kind == "end" and other.start == note.start for other in own)


def _is_thinned(part: bytes, whole: bytes) -> bool:
    """Whether the part is what is left of the whole when some of its bytes are dropped."""
    place = 0
    for line in part.splitlines(keepends=True):
        # A line is either whole or torn where bytes were dropped: then byte by byte.
        found = whole.find(line, place)
        if found >= 0:
            place = found + len(line)
            continue
        for byte in line:
            place = whole.find(byte, place) + 1
            if not place:
                return False
    return True


def _difference(first: bytes, second: bytes) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def the_newest_checkpoint_is_stored(seen: Observation) -> Iterator[str]:
    """The newest checkpoint that was ever stored is stored: nothing but a newer one replaces it."""
    for run in seen.runs:
        stored = _newest_steps(run.artifacts)
        events = [event.get("artifacts") for event in run.events if event.get("kind") == "artifacts_stored"]
        for name, step in _newest_steps(
            [str(it) for names in events if isinstance(names, list) for it in names]
        ).items():
            if stored.get(name, -1) < step:
                yield f"{name}-{step} was stored, and the record has {stored.get(name, 'none')}"


def _newest_steps(names: Sequence[str]) -> dict[str, int]:
    """The name of each series of checkpoints to its last step."""
    steps: dict[str, int] = {}
    for name in names:
        series, _, step = name.rpartition("-")
        if series and step.isdecimal():
            steps[series] = max(int(step), steps.get(series, -1))
    return steps


def commands_work(seen: Observation) -> Iterator[str]:
    """After the faults each command succeeds, and none ever ends in an error of Python's."""
    for command, output in seen.failed.items():
        yield f"`{command}` failed: {_shortened(_without_outputs(output).strip())}"
    for command, output in seen.outputs.items():
        unexpected = [place.start() for place in _ERRORS_OF_PYTHON.finditer(output) if _is_unexpected(place, output)]
        if unexpected:
            yield f"`{command}` printed an error of Python's: {_shortened(output[unexpected[0] :].strip())}"


def _is_unexpected(place: re.Match[str], output: str) -> bool:
    """Where Pulumi shows only the first line of a traceback, the next error's kind counts: it prints the whole further on."""
    error = _ERROR_LINE.search(output, place.end())
    return place[0] != _TRACEBACK or error is None or not error[1].startswith(_EXPECTED_ERROR)


def _without_outputs(output: str) -> str:
    """Pulumi prints a stack's outputs, which are long, after the errors."""
    before, _, outputs = output.partition("\nOutputs:\n")
    return before + "".join(outputs.rpartition("\nResources:\n")[1:])


def _shortened(text: str) -> str:
    """Its beginning and, with the kind of the error, its end."""
    return text if len(text) <= 3000 else f"{text[:500]}\n[…]\n{text[-2500:]}"


def nothing_is_left(seen: Observation) -> Iterator[str]:
    """After `destroy` there is nothing of the cluster but what it reports as stored."""
    yield from (f"after `destroy` there is still {thing}" for thing in seen.left)


def the_neighbour_is_untouched(seen: Observation) -> Iterator[str]:
    """The cluster beside it changes only by its own owner's commands."""
    yield from (f"the cluster beside it has changed: {change}" for change in seen.neighbour)


INVARIANTS = (
    the_run_ends,
    steps_never_go_back,
    it_trains_once,
    training_goes_on,
    attempts_are_counted,
    lines_are_recorded,
    the_newest_checkpoint_is_stored,
    commands_work,
    nothing_is_left,
    the_neighbour_is_untouched,
)


def broken(seen: Observation) -> list[str]:
    """All that is wrong, each with the name of its invariant."""
    return [f"{invariant.__name__}: {wrong}" for invariant in INVARIANTS for wrong in invariant(seen)]
