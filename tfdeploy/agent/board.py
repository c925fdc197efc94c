"""TensorBoard as a task: on all runs of `train_dir`, at the task's own address."""

import importlib.util
import os
import sys
from pathlib import PurePosixPath
from typing import List, Mapping

MISSING = "tfdeploy: TensorBoard is not installed here: it is a package of its own. Add tensorboard to the image, or to `requirements`"
"""The last words where the module is not there."""


def arguments(known: Mapping[str, str]) -> List[str]:
    """TensorBoard's own arguments, from the task's environment.

    The folder is the one that holds those of the runs, so that runs can be compared. A task whose address is its own name has a
    network of its own to listen in.
    """
    host, _, port = known["TFDEPLOY_ADDRESS"].rpartition(":")
    run = known["TFDEPLOY_TRAIN_DIR"]
    folder = run.rpartition("/")[0] if "://" in run else str(PurePosixPath(run).parent)
    where = ["--bind_all"] if host == known["TFDEPLOY_HOSTNAME"] else ["--host", host]
    return ["--logdir", folder, "--port", port, *where]


def board() -> None:
    """Become TensorBoard; exit code 1 where it is not there."""
    if importlib.util.find_spec("tensorboard") is None:
        sys.exit(MISSING)
    command = [sys.executable, "-m", "tensorboard.main", *arguments(os.environ)]
    os.chdir("/")  # the working directory is the user's code, whose modules would be taken for TensorBoard's
    os.execv(sys.executable, command)
