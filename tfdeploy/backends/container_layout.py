"""What containers have on any engine: folders, ports, and mounts in the form `SOURCE:TARGET[:ro]`. Pure."""

from collections.abc import Sequence

from ..agent.model.run_state import TENSORBOARD, TENSORBOARD_PORT
from ..errors import SpecError

SECRETS_FOLDER = "/run/tfdeploy/secrets"

RECORD_FOLDER = "/tfdeploy/record"
"""Where the controller's volume is mounted."""

TASK_FOLDER, TRAIN_FOLDER = "/tmp/tfdeploy", "/tfdeploy/train"
"""Where a launcher stores its task's files; where checkpoints are, if the user sets no `train_dir`."""

RESERVED_FOLDERS = ("/run/tfdeploy", TASK_FOLDER, RECORD_FOLDER)

TRAIN_DIR_MODE = "1777"
"""The controller, as root, creates a run's folder in `train_dir`. The tasks' users write into it. They are those of the images, which
the controller does not know. Who reaches the folder is decided by the mode of the user's own `train_dir` above it."""

TASK_PORT, CONTROLLER_PORT = 2222, 2220
"""Where every task has its own address, all of them can use TensorFlow's default port."""


def default_port(job: str) -> int:
    """The port of a task with an address of its own."""
    return TENSORBOARD_PORT if job == TENSORBOARD else TASK_PORT


def split_mount(where: str, text: str, remedy: str) -> tuple[str, str, bool]:
    """Source and target of a text, and whether it is only read.

    Raises:
        SpecError: the text does not have the form.
    """
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or mode not in ("", "ro", "rw"):
        raise SpecError(where, f"{text!r} is not a valid mount", remedy)
    refuse_relative(where, text, target, remedy)
    return source, target, mode == "ro"


def refuse_relative(where: str, text: str, target: str, remedy: str) -> None:
    """A target is a folder other than `/`."""
    if not target.startswith("/") or not target.strip("/"):
        raise SpecError(where, f"the target in {text!r} is not an absolute folder", remedy)


def refuse_targets(where: str, targets: Sequence[str]) -> None:
    """Two mounts must not have the same target, and none may hide a folder that tfdeploy needs."""
    folders = [target.rstrip("/") for target in targets]
    for target, folder in zip(targets, folders, strict=True):
        if folders.count(folder) > 1:
            raise SpecError(where, f"{folder} is the target of two mounts", "Change the target of one of them.")
        if any(f"{folder}/".startswith(f"{own}/") or f"{own}/".startswith(f"{folder}/") for own in RESERVED_FOLDERS):
            raise SpecError(where, f"{target} is reserved for tfdeploy", "Choose another target.")
