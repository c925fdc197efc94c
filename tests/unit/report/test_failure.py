"""Why a program failed: the line of the exception first, and no noise."""

import pytest

from tests.unit.report.test_report import NOON, failed, read, sight
from tests.unit.simulation import World
from tfdeploy.agent.record.record import StoredLine
from tfdeploy.report.failure import SHOWN_LINES, failure_of
from tfdeploy.report.wait import _last_lines

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


def lines_of(stderr: str, stdout: str = "") -> list[str]:
    return why(stderr, stdout)[0]


def why(stderr: str, stdout: str = "") -> tuple[list[str], str]:
    """The lines that are shown of a task that failed, and what to do."""
    made = failed()
    printed = [StoredLine(1.0, 1, text) for text in stdout.splitlines()]
    printed += [StoredLine(2.0, 2, text) for text in stderr.splitlines()]
    found = failure_of(made.job.tasks["worker-1"], sight(made, logs={"worker-1": printed}))
    return found.lines, found.remedy


NOISE = (
    "W0000 00:00:1795262401.445678   12345 dataset.cc:997] Input of GeneratorDatasetOp will not be optimized\n",
    "/lib/keras/src/layers/core/dense.py:87: UserWarning: Do not pass an `input_shape` argument\n  super().__init__(activity)\n",
    "/lib/a.py:1: DeprecationWarning: x is old\n  warnings.warn(\n",
    "2026-11-25 10:00:00.1: W tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting: OUT_OF_RANGE\n",
    "oneDNN custom operations are on. You may see slightly different results\n",
    "WARNING:absl:You are saving your model as an HDF5 file\n",
    "Additional GRPC error information from remote target /job:worker/replica:0/task:1 while calling /tensorflow.WorkerService\n",
    "/job:worker/replica:0/task:1\n",
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
        (TRACEBACK.partition("\n")[2], ["ValueError: the data is not there"]),
        (
            CHAINED,
            [
                "tensorflow.python.framework.errors_impl.NotFoundError: {{function_node x}} no file",
                "ValueError: the data is not there",
                "     [[{{node save/RestoreV2}}]]",
            ],
        ),
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
        ("the data is not there", ["the data is not there"]),
        *((noise + TRACEBACK + noise, ["ValueError: the data is not there"]) for noise in NOISE),
        (f"{NOISE[1]}the data is not there", ["the data is not there"]),
        (
            "W0000 00:00:1795262401.445678   12345 a.cc:1] The disk is full",
            ["W0000 00:00:1795262401.445678   12345 a.cc:1] The disk is full"],
        ),
        ("\x1b[31mValueError\x1b[0m", ["ValueError"]),
    ],
)
def test_the_line_of_the_error_is_first_and_noise_is_left_out(stderr: str, lines: list[str]) -> None:
    assert lines_of(stderr) == lines


def test_of_many_lines_the_error_and_the_last_ones_are_shown() -> None:
    last = "".join(f"line {number}\n" for number in range(50))
    shown = lines_of(TRACEBACK + last)
    assert shown == ["ValueError: the data is not there", "line 46", "line 47", "line 48", "line 49"]
    assert len(shown) == SHOWN_LINES


def test_where_stderr_is_only_noise_the_other_output_is_shown() -> None:
    assert lines_of(STARTUP, "no data in /data") == ["no data in /data"]
    assert lines_of("", "no data in /data") == ["no data in /data"]


def test_where_all_is_noise_the_last_lines_are_shown() -> None:
    assert lines_of(STARTUP) == STARTUP.splitlines()[-SHOWN_LINES:]
    assert lines_of("") == []


def test_the_remedy_is_by_the_line_of_the_error_though_much_was_printed_after_it() -> None:
    after = "".join(f"line {number}\n" for number in range(50))
    _, remedy = why(f"train.py: error: unrecognized arguments: --job_name=ps\n{after}")
    assert 'flags="never"' in remedy


def test_the_status_of_a_failed_run_has_the_cause_and_the_remedy() -> None:
    printed = [StoredLine(2.0, 2, text) for text in TRACEBACK.splitlines()]
    seen = read(sight(failed(), logs={"worker-1": printed}))
    assert seen.status.endswith(
        "\n\nRun failed: worker-1 failed (exit 3).\nworker-1: ValueError: the data is not there\n"
        "`tfdeploy logs worker-1` shows its output."
    )
    assert [item.hostname for item in seen.failures] == ["worker-1"]


def test_a_worker_that_failed_after_the_success_is_not_the_cause_of_anything() -> None:
    made = World(workers=2)
    made.begin_at(NOON)
    made.come()
    made.exit("worker-0")
    made.exit("worker-1", 3)
    seen = read(sight(made))
    assert seen.failures == []
    assert seen.sentences == "Run succeeded: worker-0 succeeded."


@pytest.mark.parametrize(
    ("stderr", "remedy"),
    [
        ("tfdeploy: cannot start '<{%bogus%}>': no such file\n<{%fg 1%}>\n", "no program <{ %bogus%}>"),
        ("NotFoundError: logs<{%x%}>/model.ckpt\n", ""),
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
    made = World(ps=1, workers=2, elastic={"max": 2}, restart={"maximum": 0})
    made.begin_at(NOON)
    made.come()
    made.exit("worker-1", 3)
    made.wait(3600)
    made.exit("ps-0", 4)
    seen = read(sight(made))
    assert [item.hostname for item in seen.failures] == ["ps-0", "worker-1"]
    assert "Run failed: ps-0 failed (exit 4)." in seen.status


LIBRARY = '  File "/venv/lib/python3.11/site-packages/keras/trainer.py", line 70, in fit'
OWN = '  File "/state/tasks/worker-0/code/data/load.py", line 9, in batches'


@pytest.mark.parametrize(
    ("frames", "where"),
    [
        ([OWN], "load.py, line 9"),
        ([OWN, LIBRARY], "load.py, line 9"),
        ([LIBRARY], ""),
        (['  File "<frozen runpy>", line 88, in _run_code'], ""),
        ([OWN, "KeyError: 1", "Traceback (most recent call last):", LIBRARY], ""),
    ],
)
def test_the_line_of_the_program_is_named(frames: list[str], where: str) -> None:
    lines = ["Traceback (most recent call last):", *frames, "    step()", "ValueError: shapes"]
    run = failed()
    printed = [StoredLine(2.0, 2, line) for line in lines]
    found = failure_of(run.job.tasks["worker-1"], sight(run, logs={"worker-1": printed}))
    assert (found.where, found.place) == (where, f" in {where}" if where else "")
