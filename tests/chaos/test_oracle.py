"""The oracle reports each violation, and nothing else; its samples have the programs of this cluster."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.chaos.oracle import INTERVAL, MOST_STILL, Pulse, Sample, Touch, one_process_each, untouched_programs_train
from tests.chaos.sampler import Sampler
from tests.chaos.training import PULSE, SCRIPT, STEPS
from tests.waiting import until

TASK, OTHER = "ps-0", "worker-0"


def samples(steps: Sequence[int], start: str = "a", first: int = 0, pids: Sequence[int] = (7,)) -> list[Sample]:
    """Samples of a ps with these steps, beside a worker that trains."""
    return [
        Sample(place * INTERVAL, {TASK: Pulse(start, step), OTHER: Pulse("w", place)}, {TASK: pids, OTHER: (9,)})
        for place, step in enumerate(steps, first)
    ]


MANY = int(MOST_STILL / INTERVAL)
TRAINS = samples(range(10))
STILL = [*TRAINS, *samples([9] * (MANY + 3), first=10)]
STARTED_AGAIN = [*TRAINS, *samples(range(5, 12), "b", first=10)]
GONE = [*TRAINS, *samples([9] * 5, first=10, pids=())]
AT = 10 * INTERVAL
"""When the change happens."""

VIOLATIONS = {
    "stands still": (STILL, [], f"no step for {MOST_STILL:g} s after step 9"),
    "started again": (STARTED_AGAIN, [], "its program was ended"),
    "gone": (GONE, [], "its program was ended"),
    "another task was touched": (STARTED_AGAIN, [Touch(AT, OTHER)], "its program was ended"),
    "it was only to stand still": (GONE, [Touch(0, may_end=False)], "its program was ended"),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_is_reported_once(name: str) -> None:
    seen, touches, words = VIOLATIONS[name]
    (wrong,) = untouched_programs_train(seen, touches, ())
    assert TASK in wrong
    assert words in wrong


ALLOWED = {
    "trains": (TRAINS, [], ()),
    "ended by itself": (STARTED_AGAIN, [], ("a",)),
    "touched": (STARTED_AGAIN, [Touch(AT - INTERVAL, TASK)], ()),
    "all are touched, and for ever": (STILL, [Touch(0)], ()),
    "not seen in one sample": ([*TRAINS, *samples([10], first=10, pids=()), *samples(range(11, 20), first=11)], [], ()),
    "the run is over": (
        [*TRAINS, *(Sample(AT + place, {OTHER: Pulse("w", STEPS), TASK: Pulse("a", 9)}) for place in range(9))],
        [],
        ("w",),
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_may_happen_is_not_reported(name: str) -> None:
    seen, touches, ended = ALLOWED[name]
    assert list(untouched_programs_train(seen, touches, ended)) == []


def test_two_processes_of_one_task_are_reported_once() -> None:
    seen = [*samples([1]), *samples([2, 3], first=1, pids=(7, 8)), *samples([4], first=3, pids=(8,))]
    assert list(one_process_each(seen)) == [
        f"{INTERVAL:.1f} s after the first sample, {TASK} had the processes (7, 8) at once"
    ]


@pytest.fixture
def program(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    (tmp_path / SCRIPT).write_text("import time\ntime.sleep(1000)")
    environment = {"COUNTER": str(tmp_path), "TFDEPLOY_HOSTNAME": TASK}
    process = subprocess.Popen([sys.executable, SCRIPT], cwd=tmp_path, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_sampler_sees_the_programs_of_its_cluster_alone(tmp_path: Path, program: "subprocess.Popen[bytes]") -> None:
    (tmp_path / f"{TASK}{PULSE}").write_text("abc     12")
    with Sampler(tmp_path) as own, Sampler(tmp_path / "other") as other:
        until(lambda: own.samples and own.samples[-1].processes, "a process")
        assert own.samples[-1].processes == {TASK: [program.pid]}
        assert own.samples[-1].pulses == {TASK: Pulse("abc", 12)}
        program.kill()
        ended = time.monotonic()
        until(lambda: own.samples[-1].at > ended and not own.samples[-1].processes, "its end, before it is waited for")
    assert not any(sample.processes or sample.pulses for sample in other.samples)
