"""Errors that TensorFlow 2.21 and Keras 3 print, and what is advised."""

import pytest

from tests.unit.report.test_program_problems import NEVER_USED, TRACEBACK, cause
from tfdeploy.agent.record.record import FAILURE_LINES

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
