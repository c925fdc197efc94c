"""Findings of a dump: five trainings that are well have none, and each planted fault has its own."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tfdeploy.agent.task_dump import PeerConnection, ProcessDump, PythonThread, TaskDump, Wait
from tfdeploy.report.dump_findings import findings
from tfdeploy.report.progress import Progress
from tfdeploy.report.task_sight import TaskSight

NOW = 1_700_000_000.0
BATCH = "train.py:33 in next_batch"
RUN = "/usr/lib/python3/dist-packages/tensorflow/python/client/session.py:1400 in _call_tf_sessionrun"
NEXT = "/venv/lib/python3.11/site-packages/tensorflow/python/data/ops/iterator_ops.py:826 in __next__"
POOL = "/usr/lib/python3.11/multiprocessing/pool.py:367 in map"
REDUCE = "/venv/lib/python3.11/site-packages/tensorflow/python/distribute/cross_device_ops.py:1208 in reduce"
FUTEX = Wait("futex", seconds=300.0)


def steps(
    rate: float = 10.0, age: float = 1.0, pause: float = 1.0, readings: int = 30, longest: float = 0.0
) -> Progress:
    progress = Progress(step=1000.0, goal=9000.0, rate=rate, stepped_at=NOW - age, readings=readings, pause=pause)
    return progress._replace(longest=longest or pause)


def process(cpus: float = 0.9, wait: Wait | None = None, **values: object) -> ProcessDump:
    return replace(ProcessDump(17, "python", "S" if wait else "", 60, cpus, 1 << 30, wait=wait), **values)  # type: ignore[arg-type]


def busy(hostname: str, progress: Progress | None = None, frame: str = RUN, **values: object) -> TaskSight:
    stack = PythonThread("", [frame, "train.py:80 in <module>"])
    dump = TaskDump(hostname, 1.0, [process(**values)], has_bytes=True, python=[stack], samples=[stack] * 5)  # type: ignore[arg-type]
    return TaskSight(hostname, hostname.rpartition("-")[0], dump, progress or steps())


def idle(
    hostname: str, wait: Wait = FUTEX, age: float = 300.0, frame: str = RUN, pause: float = 1.0, **values: object
) -> TaskSight:
    return busy(hostname, steps(age=age, pause=pause), frame, cpus=0.0, wait=wait, **values)


def ps(hostname: str, sent: int, wait: Wait = FUTEX) -> TaskSight:
    """A server, whose main thread waits for its end."""
    connections = [PeerConnection("10.0.0.2:2222", "10.0.0.3:40000", sent, sent)]
    dump = TaskDump(hostname, 1.0, [process(0.3, wait)], connections=connections, has_bytes=True)
    return TaskSight(hostname, "ps", dump, Progress())


def with_dump(sight: TaskSight, **values: object) -> TaskSight:
    assert sight.dump is not None
    return replace(sight, dump=replace(sight.dump, **values))  # type: ignore[arg-type]


ASYNC = [ps("ps-0", 30 << 20), ps("ps-1", 20 << 20), *(busy(f"worker-{n}", steps(8.0 + n)) for n in range(3))]
READ = Wait("read", "/data/part-3", 300.0)
WELL = {
    "asynchronous, with two ps": ASYNC,
    "mirrored, of which one waits in an evaluation of the chief": [
        busy("worker-0", steps(age=20.0)),
        idle("worker-1", age=20.0),
    ],
    "one task between two steps": [idle("worker-0", age=2.0, frame=BATCH)],
    "servers of a coordinator, which print no step": [
        busy("chief-0"),
        *(replace(idle(f"worker-{n}"), progress=Progress()) for n in range(3)),
        ps("ps-0", 90 << 20),
    ],
    "small variables, of which nearly all are on one ps": [
        ps("ps-0", 38 << 20),
        ps("ps-1", 110 << 10),
        busy("worker-0"),
        busy("worker-1", steps(rate=6.0)),
    ],
    "a chief that wrote a checkpoint for 18 seconds of the last 30": [
        *ASYNC[:2],
        busy("worker-0", steps(rate=4.0, longest=18.0)),
        *ASYNC[3:],
    ],
    "one that is faster than the others": [*ASYNC[:4], busy("worker-2", steps(rate=60.0))],
    "the first steps, with the time that the first one takes": [
        busy("worker-0", steps(readings=3)),
        busy("worker-1", steps(rate=2.0, readings=3)),
    ],
    "lines every five minutes": [idle(f"worker-{n}", age=900.0, pause=300.0) for n in range(2)],
    "all steps are made": [replace(idle("worker-0"), progress=steps(age=300.0)._replace(step=9000.0))],
    "files that are read from the memory of the machine": [busy("worker-0", faults=4000.0)],
    "a batch of five that was in the iterator": [
        with_dump(busy("worker-0", frame=NEXT), samples=[PythonThread("", [NEXT])] * 4 + [PythonThread("", [RUN])])
    ],
    "no step yet, while the input is prepared": [replace(busy("worker-0", frame=NEXT), progress=Progress())],
    "one that has done its part, and waits for the end of the others": [
        *ASYNC[:4],
        replace(idle("worker-2", frame="train.py:90 in main"), progress=steps(age=300.0)._replace(goal=None)),
    ],
    "one whose launcher is late with its dump": [*ASYNC[:4], TaskSight("worker-2", "worker", None, steps())],
    "no task": [],
}

FAULTS: dict[str, tuple[Sequence[TaskSight], list[tuple[str, str]]]] = {
    "slow": (
        [*ASYNC[:4], busy("worker-2", steps(rate=2.0))],
        [("worker-2", "worker-2 is 4.0 times slower than the median (2.0 and 8.0 steps/s).")],
    ),
    "slow, and with a pause": (
        [*ASYNC[:4], busy("worker-2", steps(rate=1.5, longest=8.0))],
        [("worker-2", "worker-2 is 4.0 times slower than the median (2.0 and 8.0 steps/s).")],
    ),
    "slow, of two": (
        [busy("worker-0"), busy("worker-1", steps(rate=2.0))],
        [("worker-1", "worker-1 is 5.0 times slower than worker-0 (2.0 and 10.0 steps/s).")],
    ),
    "read": (
        [idle("worker-0"), idle("worker-1"), ps("ps-0", 0), idle("worker-2", READ, frame=BATCH)],
        [("worker-2", f"All wait for worker-2, which has been in read() of /data/part-3 ({BATCH}) for 5m.")],
    ),
    "read, of one that the others wait for in a thread pool": (
        [
            with_dump(idle("worker-0"), python=[PythonThread("", [POOL, REDUCE, "train.py:80 in <module>"])]),
            idle("worker-1", READ, frame=BATCH),
        ],
        [("worker-1", f"All wait for worker-1, which has been in read() of /data/part-3 ({BATCH}) for 5m.")],
    ),
    "input, with a step at one of the samples": (
        [with_dump(busy("worker-0", frame=NEXT), samples=[PythonThread("", [NEXT])] * 9 + [PythonThread("", [RUN])])],
        [
            (
                "worker-0",
                "worker-0 waits for its input: 9 of 10 samples are in the iterator of tf.data (train.py:80 in <module>).",
            )
        ],
    ),
    "input that never comes": (
        [idle("worker-0"), with_dump(idle("worker-1", frame=NEXT), inputs=[PythonThread("", [BATCH])] * 5)],
        [("worker-1", f"All wait for worker-1, which has been waiting for its input ({BATCH}) for 5m.")],
    ),
    "input without Python, of one that the others do not wait for": (
        [*ASYNC[:4], idle("worker-2", frame=NEXT)],
        [("worker-2", "worker-2 has made no step for 5m, and is waiting for its input (train.py:80 in <module>).")],
    ),
    "read, of one that the others do not wait for": (
        [*ASYNC[:4], idle("worker-2", READ, frame=BATCH)],
        [("worker-2", f"worker-2 has made no step for 5m, and is in read() of /data/part-3 ({BATCH}).")],
    ),
    "skewed": (
        [ps("ps-0", 50 << 20), ps("ps-1", 200 << 20), *ASYNC[2:]],
        [("ps-1", "ps-1 sends 80% of the bytes of all 2 ps (200 MiB/s).")],
    ),
    "stopped": (
        [*ASYNC[:4], with_dump(idle("worker-2"), processes=[process(0.0, Wait("do_signal_stop"), state="T")])],
        [("worker-2", "worker-2 is stopped: its process 17 (python) has received SIGSTOP.")],
    ),
    "lock": (
        [idle("worker-0"), idle("worker-1", frame="train.py:12 in update")],
        [("worker-1", "All wait for worker-1, which has been in futex() (train.py:12 in update) for 5m.")],
    ),
    "no peer": (
        [
            ps("ps-0", 0),
            with_dump(
                replace(idle("worker-0"), progress=Progress()),
                connections=[PeerConnection("10.0.0.3:40001", "10.9.9.9:2222", is_open=False)],
            ),
        ],
        [("worker-0", "worker-0 waits for a connection to 10.9.9.9:2222, which does not respond.")],
    ),
    "swap": (
        [*ASYNC[:4], busy("worker-2", steps(9.0), swap=2 << 30, faults=3000.0)],
        [("worker-2", "worker-2 swaps: it reads 3000 pages a second; 2 GiB are swapped out.")],
    ),
    "memory": (
        [with_dump(busy("worker-0"), memory_limit=1 << 30, limited=980 << 20)],
        [("worker-0", "worker-0 uses 96% of its 1 GiB of memory, and is killed above that.")],
    ),
    "input": (
        [busy("worker-0"), busy("worker-1", frame=NEXT)],
        [
            (
                "worker-1",
                "worker-1 waits for its input: 5 of 5 samples are in the iterator of tf.data (train.py:80 in <module>).",
            )
        ],
    ),
    "disk": (
        [idle("worker-0", Wait("pread64", "/mnt/nfs/data", 40.0), age=1.0, frame=BATCH, state="D")],
        [("worker-0", f"worker-0 waits for a disk or a network file system, in pread64() of /mnt/nfs/data ({BATCH}).")],
    ),
    "no launcher": (
        [idle("worker-0"), idle("worker-1"), TaskSight("worker-2", "worker", None, steps(age=300.0))],
        [("worker-2", "All wait; worker-2 has sent no dump: its launcher does not respond.")],
    ),
    "no launcher, of one that the others do not wait for": (
        [*ASYNC[:4], TaskSight("worker-2", "worker", None, steps(age=60.0))],
        [("worker-2", "worker-2 has sent no dump: its launcher does not respond.")],
    ),
    "busy": (
        [idle("worker-0"), busy("worker-1", steps(age=300.0), frame="train.py:50 in evaluate")],
        [],
    ),
    "nothing visible": (
        [idle("worker-0"), idle("worker-1")],
        [("", "No task has made a step for 5m, and none uses a processor.")],
    ),
    "no steps are printed": (
        [replace(idle("worker-0", READ, frame=BATCH), progress=Progress())],
        [("worker-0", f"worker-0 has made no step for 5m, and is in read() of /data/part-3 ({BATCH}).")],
    ),
}


@pytest.mark.parametrize("name", WELL)
def test_a_training_that_is_well_has_no_finding(name: str) -> None:
    assert findings(WELL[name], NOW) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_its_finding_and_no_other(name: str) -> None:
    tasks, expected = FAULTS[name]
    assert [(finding.about, finding.text) for finding in findings(tasks, NOW)] == expected
