"""TensorBoard as a task: it shows all runs in `train_dir`, at the task's own address."""

import importlib.util
import os
import sys
from pathlib import PurePosixPath
from typing import List, Mapping

MISSING = "tfdeploy: TensorBoard is not installed. Add the package tensorboard to the image, or to `requirements`"


def arguments(env: Mapping[str, str]) -> List[str]:
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
    """Become TensorBoard; exit code 1 where it is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        sys.exit(MISSING)
    command = [sys.executable, "-m", "tensorboard.main", *arguments(os.environ)]
    os.chdir("/")  # modules of the user's code in the working directory could be imported instead of TensorBoard's
    os.execv(sys.executable, command)
