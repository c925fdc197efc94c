"""What is wrong with programs: the line of the exception first and no noise; peers that do not respond; metrics that are no numbers;
what is advised for errors that TensorFlow 2.21 and Keras 3 print."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.report.test_report import NOON, failed, read, sight
from tests.unit.simulation import running
from tfdeploy.agent.control.until_metrics import note_problems
from tfdeploy.agent.record.metric_values import LoggedValue
from tfdeploy.agent.record.progress import Progress
from tfdeploy.agent.record.record import FAILURE_LINES, StoredLine
from tfdeploy.backends.base import ObservedState
from tfdeploy.report.program_problems import SHOWN_LINES, Finding, failure_of, program_problems
from tfdeploy.report.update_wait import _last_lines

STARTUP = """\
2026-11-21 12:00:01.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You may see slightly different results.
2026-11-21 12:00:01.223456: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:467] Unable to register cuFFT factory
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
E0000 00:00:1795262401.345678   12345 cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to register factory
W0000 00:00:1795262401.445678   12345 computation_placer.cc:177] computation placer already registered. Please check linkage.
2026-11-21 12:00:01.523456: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is optimized
To enable the following instructions: AVX2 AVX512F FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.
2026-11-21 12:00:02.623456: E external/local_xla/xla/stream_executor/cuda/cuda_platform.cc:51] failed call to cuInit
WARNING:tensorflow:From /usr/lib/python3/a.py:10: The name tf.Session is deprecated. Please use tf.compat.v1.Session instead.
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "/work/train.py", line 12, in <module>
    main()
    ~~~~^^
  File "/work/train.py", line 8, in main
    load(folder)
    ^^^^^^^^^^^^
ValueError: the data is not there
"""
CHAINED = f"""\
{TRACEBACK}
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/work/train.py", line 20, in <module>
    sys.exit(code)
tensorflow.python.framework.errors_impl.NotFoundError: {{{{function_node x}}}} no file
     [[{{{{node save/RestoreV2}}}}]]
"""
IGNORED = """\
Exception ignored in: <function Pool.__del__ at 0x7f>
Traceback (most recent call last):
  File "/usr/lib/python3/pool.py", line 268, in __del__
    self.close()
TypeError: 'NoneType' object is not callable
"""
ABORTED = (
    "W0000 00:00:1795262401.445678   12345 local_rendezvous.cc:412] Local rendezvous is aborting: Step 5 cancelled."
)
"""What a thread of TensorFlow's logs while Python prints a traceback."""

_CREATED = """\
Object was never used (type <class 'tensorflow.python.framework.ops.Operation'>):
<tf.Operation 'init' type=NoOp>
If you want to mark it as used call its "mark_used()" method.
It was originally created here:
  File "/work/build.py", line 12, in main
    raise ValueError("the data is not there")  File "/work/build.py", line 7, in build
    return tf.initialize_all_variables()  File "/venv/lib/python3.11/site-packages/tensorflow/python/util/tf_should_use.py", line 288
    return _add_should_use_warning(fn(*args, **kwargs),
==================================
"""
NEVER_USED = (
    f"ERROR:tensorflow:==================================\n{_CREATED}"
    f"E1128 01:09:05.836025 139776072383360 tf_should_use.py:80] ==================================\n{_CREATED}"
)
"""What TensorFlow 2.21 prints at the exit of a program that fails before it runs its init op, once for each of its loggers."""


def lines_of(stderr: str, stdout: str = "") -> list[str]:
    return cause(stderr, stdout)[0]


def cause(stderr: str, stdout: str = "") -> tuple[list[str], str]:
    """The lines that are shown of a task that failed, and what to do."""
    made = failed()
    printed = [StoredLine(1.0, 1, text) for text in stdout.splitlines()]
    printed += [StoredLine(2.0, 2, text) for text in stderr.splitlines()]
    found = failure_of(made.job.tasks["worker-1"], sight(made, logs={"worker-1": printed}))
    return [*found.lines], found.remedy


MANY = "".join(f"line {number}\n" for number in range(50))
NOISE = (
    "W0000 00:00:1795262401.445678   12345 dataset.cc:997] Input of GeneratorDatasetOp will not be optimized\n",
    "/lib/keras/src/layers/core/dense.py:87: UserWarning: Do not pass an `input_shape` argument\n  super().__init__(activity)\n",
    "/lib/a.py:1: DeprecationWarning: x is old\n  warnings.warn(\n",
    "2026-11-25 10:00:00.1: W tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting: OUT_OF_RANGE\n",
    "Additional GRPC error information from remote target /job:worker/replica:0/task:1 while calling /tensorflow.WorkerService\n",
)
"""Lines beside a cause that do not explain it."""


@pytest.mark.parametrize(
    ("stderr", "lines"),
    [
        (STARTUP + TRACEBACK, ["ValueError: the data is not there"]),
        ("step 5\n" + TRACEBACK + STARTUP, ["ValueError: the data is not there", "step 5"]),
        (
            TRACEBACK.replace("ValueError", f"{ABORTED}\n{STARTUP}ValueError"),
            ["ValueError: the data is not there", ABORTED],
        ),
        (
            CHAINED,
            [
                "tensorflow.python.framework.errors_impl.NotFoundError: {{function_node x}} no file",
                "ValueError: the data is not there",
                "     [[{{node save/RestoreV2}}]]",
            ],
        ),
        (TRACEBACK + NEVER_USED, ["ValueError: the data is not there"]),
        (NEVER_USED.partition("=\nE")[0] + "\n" + TRACEBACK, ["ValueError: the data is not there"]),
        (TRACEBACK + IGNORED, ["ValueError: the data is not there"]),
        (
            "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --x",
            ["train.py: error: unrecognized arguments: --x", "usage: train.py [-h]"],
        ),
        (
            "FATAL Flags parsing error: Unknown command line flag 'x'\nPass --helpshort to see help on flags.",
            ["FATAL Flags parsing error: Unknown command line flag 'x'", "Pass --helpshort to see help on flags."],
        ),
        (
            "begin\nF0000 00:00:1795262401.3 1 a.cc:5] Check failed: x\nend",
            ["F0000 00:00:1795262401.3 1 a.cc:5] Check failed: x", "begin", "end"],
        ),
        *((noise + TRACEBACK + noise, ["ValueError: the data is not there"]) for noise in NOISE),
        (f"{NOISE[1]}the data is not there", ["the data is not there"]),
        (TRACEBACK + MANY, ["ValueError: the data is not there", "line 46", "line 47", "line 48", "line 49"]),
        (STARTUP, STARTUP.splitlines()[-SHOWN_LINES:]),
        ("", []),
        (
            "W0000 00:00:1795262401.445678   12345 a.cc:1] The disk is full",
            ["W0000 00:00:1795262401.445678   12345 a.cc:1] The disk is full"],
        ),
    ],
)
def test_the_line_of_the_error_is_first_and_noise_is_left_out(stderr: str, lines: list[str]) -> None:
    assert lines_of(stderr) == lines


def test_where_stderr_is_only_noise_the_other_output_is_shown() -> None:
    assert lines_of(STARTUP, "no data in /data") == ["no data in /data"]
    assert lines_of("", "no data in /data") == ["no data in /data"]


def test_a_worker_that_failed_after_the_success_is_not_the_cause_of_anything() -> None:
    made = running(NOON, workers=2)
    made.exit("worker-0")
    made.exit("worker-1", 3)
    seen = read(sight(made))
    assert seen.failures == []
    assert seen.sentences == "Run succeeded: worker-0 succeeded."


@pytest.mark.parametrize(
    ("stderr", "remedy"),
    [
        ("tfdeploy: cannot start '<{%bogus%}>': no such file\n<{%fg 1%}>\n", "no program <{ %bogus%}>"),
        ("".join(f"{number} <{{%reset%}}>\n" for number in range(50)), ""),
        (f"{STARTUP}2026-11-21 12:00:01.1: I a.cc:1] <{{%reset%}}>\n", ""),
    ],
)
def test_what_looks_like_pulumis_colours_ends_no_update(stderr: str, remedy: str) -> None:
    made = failed()
    seen = read(sight(made, logs={"worker-1": [StoredLine(2.0, 2, text) for text in stderr.splitlines()]}))
    shown = [seen.status, seen.sentences, _last_lines(seen), *seen.failures[0].lines, seen.failures[0].remedy]
    assert not [text for text in shown if "<{%" in text]
    assert any("<{ %" in line for line in seen.failures[0].lines)
    assert remedy in seen.failures[0].remedy


def test_a_worker_that_was_left_out_long_before_is_not_the_cause_of_the_failure() -> None:
    made = running(NOON, ps=1, workers=2, elastic={"max": 2}, restart={"maximum": 0})
    made.exit("worker-1", 3)
    made.wait(3600)
    made.exit("ps-0", 4)
    seen = read(sight(made))
    assert [item.about for item in seen.failures] == ["ps-0", "worker-1"]
    assert "Run failed: ps-0 failed (exit 4)." in seen.status


LIBRARY = '  File "/venv/lib/python3.11/site-packages/keras/trainer.py", line 70, in fit'
OWN = '  File "/state/tasks/worker-0/code/data/load.py", line 9, in batches'


@pytest.mark.parametrize(
    ("frames", "where"),
    [
        ([OWN], "load.py, line 9"),
        ([OWN, LIBRARY], "load.py, line 9"),
        (['  File "<frozen runpy>", line 88, in _run_code'], ""),
        ([OWN, "KeyError: 1", "Traceback (most recent call last):", LIBRARY], ""),
    ],
)
def test_the_line_of_the_program_is_named(frames: list[str], where: str) -> None:
    lines = ["Traceback (most recent call last):", *frames, "    step()", "ValueError: shapes"]
    run = failed()
    printed = [StoredLine(2.0, 2, line) for line in lines]
    found = failure_of(run.job.tasks["worker-1"], sight(run, logs={"worker-1": printed}))
    assert found.text == f"worker-1 failed with exit code 3{f' in {where}' if where else ''}."


LINE = (
    "2026-11-21 12:00:10.1: I tensorflow/core/a/master.cc:245] CreateSession still waiting for response from worker: "
)


def line(peer: str) -> str:
    job, index = peer.split("-")
    return f"{LINE}/job:{job}/replica:0/task:{index}"


def look(texts: list[str], waiting: str = "worker-1", ended: str = "worker-0", **args: Any) -> ObservedState:
    """A run in which one task has ended, and another has printed these lines."""
    made = running(NOON, **{"ps": 1, "workers": 2, "success": "all-workers", **args})
    if ended:
        made.exit(ended)
    return sight(made, logs={waiting: [StoredLine(float(place), 2, text) for place, text in enumerate(texts)]})


def waits(*args: Any, **more: Any) -> list[Finding]:
    return program_problems(look(*args, **more))


def test_a_worker_that_waits_for_one_that_has_ended_is_named_with_what_to_set() -> None:
    (found,) = waits(["begin", line("worker-0")])
    assert (found.about, found.wrong) == ("worker-1", True)
    assert found.text == "worker-1 waits for worker-0 (succeeded), which does not respond to its session."
    assert 'device_filters=["/job:ps", "/job:worker/task:1"]' in found.remedy


@pytest.mark.parametrize(
    "texts", [[line("worker-0"), "step 1"], [], ["step 1"], [line("ps-0")], [line("worker-9")] * 5]
)
def test_a_worker_that_has_begun_or_waits_for_a_moment_is_not_named(texts: list[str]) -> None:
    assert waits(texts) == []


@pytest.mark.parametrize("job", ["chief", "master"])
def test_a_peer_that_runs_and_does_not_respond_for_long_is_named(job: str) -> None:
    (found,) = waits([line(f"{job}-0")] * 3, ended="", chief=1)
    assert found.text == "worker-1 waits for chief-0 (running), which does not respond to its session."


def test_one_cycle_of_lines_for_each_of_many_peers_is_no_long_wait() -> None:
    peers = [line(f"worker-{index}") for index in (0, 2, 3)] + [line("ps-0")]
    assert waits(peers * 2, ended="", workers=4) == []
    (found,) = waits([*peers * 3, line("worker-2")], ended="", workers=4)
    assert "waits for worker-2 (running)," in found.text


def test_a_worker_that_does_not_exist_in_an_elastic_run_is_named() -> None:
    more: dict[str, Any] = {"elastic": {"max": 4}, "success": "worker-0"}
    (found,) = waits([line("worker-3")], waiting="worker-0", ended="", **more)
    assert found.text == "worker-0 waits for worker-3 (not there), which does not respond to its session."
    assert 'device_filters=["/job:ps", "/job:worker/task:0"]' in found.remedy
    assert waits([line("worker-9")] * 5, waiting="worker-0", ended="", **more) == []


def test_gpu_workers_are_the_last_of_the_workers() -> None:
    (found,) = waits([line("worker-2")], ended="gpu-worker-0", gpu_workers=1)
    assert "waits for gpu-worker-0 (" in found.text


@pytest.mark.parametrize(
    ("own", "leader", "more", "seconds", "is_named"),
    [
        (["begin"], ["step 1"], {}, 60.0, True),
        ([line("worker-0")] * 20, ["step 1"], {}, 60.0, True),
        (["step 1"], ["step 1"], {}, 60.0, False),
        (["begin"], ["epoch"], {}, 60.0, False),
        (["begin"], ["step 1"], {}, 59.0, False),
        (["begin"], ["step 1"], {"chief": 1, "success": "chief", "worker_timeout": "1m"}, 60.0, False),
    ],
)
def test_a_worker_without_a_step_that_did_not_end_is_named_where_worker_0_decides(
    own: list[str], leader: list[str], more: dict[str, Any], seconds: float, is_named: bool
) -> None:
    args = {"success": "worker-0", **more}
    first = "chief-0" if "chief" in args else "worker-0"
    seen = look(own, ended=first, **args)
    assert seen.view.run_state is not None
    assert seen.view.run_state.result is not None
    task = seen.view.run_state.tasks["worker-1"]
    task.state, task.ended = "stopped", seen.view.run_state.result.at + seconds
    progress = {name: Progress(step=1.0) for name, texts in ((first, leader), ("worker-1", own)) if "step 1" in texts}
    named = program_problems(replace(seen, view=replace(seen.view, progress=progress)))
    assert [(wait.about, wait.wrong) for wait in named] == [("worker-1", False)] * is_named
    assert all("printed no step" in wait.text for wait in named)


CONDITIONS: dict[str, Any] = {
    "workers": 1,
    "metrics": {"accuracy": "acc (.*)", "loss": "loss (.*)"},
    "until": {"accuracy": ">= 0.9", "loss": "< 0.1"},
}


def conditioned(logged: dict[str, str], now: dict[str, str] | None = None, end: str = "") -> ObservedState:
    """A run that has logged these values, and `now` others."""
    world = running(NOON, **CONDITIONS)
    values = {name: LoggedValue("worker-0", 1, text) for name, text in logged.items()}
    note_problems(world.job, values, [])
    if end:
        world.exit("worker-0", {"succeeded": 0, "failed": 1}[end])
    return sight(world, metrics=logged if now is None else now)


@pytest.mark.parametrize(
    ("logged", "now", "names"),
    [
        ({"accuracy": "97.5%,"}, None, ["accuracy"]),
        ({"accuracy": "0,97", "loss": "n/a"}, None, ["accuracy", "loss"]),
        ({"loss": "inf"}, None, ["loss"]),
        ({"accuracy": "0.97"}, None, []),
        ({"accuracy": "97.5%,"}, {"accuracy": "0.97"}, []),
        ({"accuracy": "97.5%,"}, {}, []),
    ],
)
@pytest.mark.parametrize("end", ["", "succeeded", "failed"])
def test_a_metric_that_is_not_a_number_is_named(
    logged: dict[str, str], now: dict[str, str] | None, names: list[str], end: str
) -> None:
    problems = [problem.text for problem in program_problems(conditioned(logged, now, end))]
    assert [text.partition(":")[0].rpartition(" ")[2] for text in problems] == names


def test_a_pattern_that_is_switched_off_is_named() -> None:
    at = conditioned({})
    assert at.view.run_state is not None
    at.view.run_state.until_problems.append("until_disabled accuracy")
    (problem,) = program_problems(at)
    assert problem.text.startswith("`until` does not see new values of accuracy")


PER_REPLICA = (
    "ValueError: Attempt to convert a value (PerReplica:{\n  0: <tf.Tensor: shape=(16, 28, 28, 1), dtype=float32, numpy=\n"
    + "         [0.],\n" * 300
    + "         [0.]]]], shape=(16, 28, 28, 1), dtype=float32)>\n"
    "}) with an unsupported type (<class 'tensorflow.python.distribute.values.PerReplica'>) to a Tensor."
)
"""Keras 3 under MultiWorkerMirroredStrategy, with images: a message of 310 lines."""

UNAVAILABLE = """\
tensorflow.python.framework.errors_impl.UnavailableError: Graph execution error:

From /job:worker/replica:0/task:0:
failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:39882: Failed to connect to remote host: Connection refused
Additional GRPC error information from remote target /job:worker/replica:0/task:0 while calling /tensorflow.WorkerService"""


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("AttributeError: module 'tensorflow.compat.v1' has no attribute 'estimator'", "have no Estimator"),
        ("ModuleNotFoundError: No module named 'tensorflow_addons'", "no TensorFlow Addons"),
        (PER_REPLICA, 'set `requirements=["tf_keras"]`'),
        (
            "absl.flags._exceptions.DuplicateFlagError: The flag 'log_dir' is defined twice. First from absl.logging, second from",
            "absl.logging defines the flag log_dir too: rename it in the program, and in `command`.",
        ),
        ("RuntimeError: Collective ops must be configured at program startup", "Create the strategy before any tensor"),
        (UNAVAILABLE, '`restart={"on": ["signal", "1"]}` starts it again.'),
    ],
)
def test_an_error_of_tensorflow_has_a_remedy_whatever_is_printed_after_it(error: str, remedy: str) -> None:
    stderr = f"{TRACEBACK.rpartition('ValueError')[0]}{error}\n{NEVER_USED}"
    lines, advised = cause(stderr)
    assert remedy in advised
    assert lines[0] == error.partition("\n")[0]


def test_a_long_message_is_read_and_its_end_is_enough_for_its_remedy() -> None:
    assert len((TRACEBACK + PER_REPLICA + NEVER_USED).splitlines()) < FAILURE_LINES
    assert 'set `requirements=["tf_keras"]`' in cause(PER_REPLICA.rpartition("\n")[2])[1]
