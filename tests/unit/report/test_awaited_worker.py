"""The worker that the others of a synchronous training wait for, and trainings that have none, although some of it looks the same."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tfdeploy.agent.task_dump import PeerConnection, ProcessDump, PythonThread, TaskDump
from tfdeploy.report.dump_findings import findings
from tfdeploy.report.progress import Progress
from tfdeploy.report.task_sight import TaskSight

NOW = 1_700_000_000.0
TF = "/venv/lib/python3.11/site-packages/tensorflow/python"
MAIN = ["train.py:65 in main", "train.py:90 in <module>"]
STEP = [
    f"{TF}/eager/execute.py:53 in quick_execute",
    "/venv/lib/python3.11/site-packages/tf_keras/src/x.py:9 in fit",
    *MAIN,
]
REDUCE = [
    "/usr/lib/python3.11/threading.py:327 in wait",
    "/usr/lib/python3.11/multiprocessing/pool.py:367 in map",
    f"{TF}/distribute/cross_device_ops.py:1208 in _all_reduce_per_replica_values",
    f"{TF}/distribute/input_lib.py:264 in __next__",
    *MAIN,
]
NEXT = [
    f"{TF}/ops/gen_dataset_ops.py:3162 in iterator_get_next_as_optional",
    f"{TF}/data/ops/iterator_ops.py:886 in get_next_as_optional",
    *MAIN,
]
SAVE = [f"{TF}/checkpoint/checkpoint.py:10 in save", *MAIN]
TRACE = [
    f"{TF}/autograph/impl/api.py:3 in converted_call",
    "train.py:50 in step",
    f"{TF}/eager/def_function.py:3 in f",
    *MAIN,
]
KERAS = ["/usr/lib/python3.11/zipfile.py:9 in write", "/x/site-packages/keras/src/saving.py:5 in save", *MAIN]
LOAD = ["/usr/lib/python3/dist-packages/PIL/Image.py:33 in open", "train.py:14 in load", *MAIN]
FED = ["train.py:14 in load", "train.py:20 in generate", f"{TF}/data/ops/from_generator_op.py:198 in generator_py_func"]

Stack = Sequence[str]
BYTES = 80_000


def worker(
    hostname: str,
    main: Sequence[Stack] = (STEP,) * 10,
    fed: Sequence[Stack] = ((),) * 10,
    between: Sequence[int] = (BYTES,) * 9,
    cpus: float = 0.1,
    rate: float | None = 2.0,
    peer: str = "worker-9",
) -> TaskSight:
    """One whose main thread and input thread are there at each sample, and that exchanges so many bytes between them."""
    samples, inputs = ([PythonThread("", list(frames)) for frames in stacks] for stacks in (main, fed))
    connection = PeerConnection("10.0.0.2:2222", "10.0.0.9:40000", 0, 0, list(between))
    dump = TaskDump(
        hostname,
        1.0,
        [ProcessDump(7, "python", cpus=cpus)],
        connections=[connection],
        has_bytes=True,
        python=samples[:1],
        samples=samples,
        inputs=inputs,
        sampling=3.6,
    )
    progress = Progress(1000.0, rate=rate, stepped_at=NOW - 1, readings=30, pause=0.5)
    return TaskSight(hostname, hostname.rpartition("-")[0], dump, progress, {connection.peer: peer})


def trio(slow: TaskSight, **others: object) -> list[TaskSight]:
    """With two more, which wait."""
    waiting = [worker(name, peer=slow.hostname, **others) for name in ("worker-0", "worker-2")]  # type: ignore[arg-type]
    return [waiting[0], replace(slow, peers=dict.fromkeys(slow.peers, "worker-0")), waiting[1]]


def slow(**values: object) -> TaskSight:
    """One whose input function runs in nine of ten samples."""
    return worker("worker-1", **{"fed": [FED] * 9 + [()]} | values)  # type: ignore[arg-type]


TEXT = "worker-1 keeps the others waiting: {} of 10 samples of it are in {}, while worker-0, worker-2 wait for the same step."
FOUND = {
    "an input function, in a step of Keras": (trio(slow()), TEXT.format(9, "load (train.py:14)")),
    "an input function, and what is visible of its wait": (
        trio(slow(main=[NEXT] * 9 + [SAVE], fed=[FED] * 10), main=[REDUCE] * 10),
        TEXT.format(10, "load (train.py:14)"),
    ),
    "its own loop": (trio(slow(main=[LOAD] * 9 + [STEP], fed=[()] * 10)), TEXT.format(9, "load (train.py:14)")),
    "different lines of one function": (
        trio(slow(main=[["train.py:64 in main"]] * 4 + [["train.py:63 in main"]] * 6, fed=[()] * 10)),
        TEXT.format(10, "main (train.py:63)"),
    ),
    "an input without Python": (trio(slow(main=[NEXT] * 10, fed=[()] * 10)), TEXT.format(10, "main (train.py:65)")),
    "of two": (
        trio(slow())[:2],
        "worker-1 keeps the others waiting: 9 of 10 samples of it are in load (train.py:14), while worker-0 waits for the same step.",
    ),
    "an evaluator beside": (
        [*trio(slow()), worker("evaluator-0", main=[LOAD] * 10)],
        TEXT.format(9, "load (train.py:14)"),
    ),
    "the log of one has the steps": (trio(slow(rate=None)), TEXT.format(9, "load (train.py:14)")),
}

EQUAL = [worker(f"worker-{n}", peer=f"worker-{(n + 1) % 3}") for n in range(3)]
NONE = {
    "all equal": EQUAL,
    "all equally slow": trio(slow(), fed=[FED] * 10),
    "two are slow": [*trio(slow())[:2], replace(slow(), hostname="worker-2")],
    "half of the time in the input": trio(slow(fed=[FED, ()] * 5), fed=[(), FED] * 5),
    "others that are in it now and then": trio(slow(), fed=[FED] * 2 + [()] * 8),
    "one worker": [slow()],
    "a chief that writes a checkpoint at one sample": trio(slow(main=[SAVE] + [STEP] * 9, fed=[()] * 10)),
    "a chief that writes one during all samples": trio(slow(main=[SAVE] * 10, fed=[()] * 10)),
    "a chief that uploads one during all samples": trio(slow(main=[LOAD] * 10, between=[200] * 9), between=[200] * 9),
    "the end of such an upload": trio(
        slow(main=[LOAD] * 9 + [STEP], between=[0] * 5 + [BYTES] * 4), between=[BYTES] * 9
    ),
    "an evaluator, whose steps are its own": [*EQUAL, worker("evaluator-0", main=[LOAD] * 10, peer="worker-0")],
    "asynchronous, with ps": [*trio(slow()), replace(worker("ps-0"), progress=Progress())],
    "independent workers": [replace(sight, peers={}) for sight in trio(slow())],
    "start-up, with no step yet": trio(slow(rate=None), rate=None),
    "compilation": trio(slow(main=[TRACE] * 10, fed=[()] * 10, between=[200] * 9), between=[200] * 9),
    "steps that take longer than all samples": trio(slow(rate=0.2), rate=0.2),
    "others that compute": trio(slow(), cpus=1.5),
    "others that are in TensorFlow, but in no step": trio(slow(), main=[SAVE] * 10),
    "an input function that waits for its turn": trio(slow(fed=[FED] * 8 + [()] * 2)),
    "a callback of Keras that saves": trio(slow(main=[KERAS] * 10, fed=[()] * 10)),
    "one that exchanges bytes with another program": [
        replace(it, peers={"10.0.0.9:40000": "db-0"}) for it in trio(slow())
    ],
    "one that does not take part": [*trio(slow()), worker("worker-3", between=[0] * 9, peer="worker-0")],
    "many functions": trio(slow(fed=[[f"train.py:{n} in f{n % 5}", FED[-1]] for n in range(10)])),
    "few samples": trio(slow(main=[STEP] * 5, fed=[FED] * 5), main=[STEP] * 5, fed=[()] * 5),
    "a launcher that does not send the input threads": trio(slow(), fed=[]),
    "no bytes": trio(slow(between=[]), between=[]),
    "a worker without a dump": [*trio(slow()), replace(worker("worker-3"), dump=None)],
}


@pytest.mark.parametrize("name", FOUND)
def test_the_worker_that_the_others_wait_for_is_found(name: str) -> None:
    tasks, text = FOUND[name]
    assert [(finding.about, finding.text) for finding in findings(tasks, NOW)] == [("worker-1", text)]


@pytest.mark.parametrize("name", NONE)
def test_a_training_where_that_is_not_certain_has_no_finding(name: str) -> None:
    assert findings(NONE[name], NOW) == []
