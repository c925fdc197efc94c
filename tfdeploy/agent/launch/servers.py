"""The programs of tasks that are part of the agent: TensorFlow's gRPC server, and TensorBoard.

The only module of the agent that imports TensorFlow.
"""

import importlib.util
import os
import sys
from pathlib import PurePosixPath
from typing import List, Mapping

MISSING = "tfdeploy: TensorBoard is not installed. Add the package tensorboard to the image, or to `requirements`"


def serve_grpc() -> None:
    """Serve TensorFlow's gRPC at this task's address in `TF_CONFIG` until stopped: a client drives all tasks (in-graph replication)."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    print(f"serving at {server.target}", flush=True)
    server.join()


def tensorboard_arguments(env: Mapping[str, str]) -> List[str]:
    """TensorBoard's arguments, from the task's environment.

    The log folder is the parent of the run's folder, so that runs can be compared. If a task's address is its hostname, it has its own
    network, and listens on all of its addresses.
    """
    host, _, port = env["TFDEPLOY_ADDRESS"].rpartition(":")
    run_folder = env["TFDEPLOY_TRAIN_DIR"]
    folder = run_folder.rpartition("/")[0] if "://" in run_folder else str(PurePosixPath(run_folder).parent)
    listen = ["--bind_all"] if host == env["TFDEPLOY_HOSTNAME"] else ["--host", host]
    return ["--logdir", folder, "--port", port, *listen]


def run_tensorboard() -> None:
    """Become TensorBoard, which shows all runs in `train_dir`, at the task's own address; exit code 1 where it is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        sys.exit(MISSING)
    command = [sys.executable, "-m", "tensorboard.main", *tensorboard_arguments(os.environ)]
    os.chdir("/")  # modules of the user's code in the working directory could be imported instead of TensorBoard's
    os.execv(sys.executable, command)
