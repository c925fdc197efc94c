"""What launcher and controller exchange in a sync: the launcher's report, and the controller's order. Pure."""

from dataclasses import dataclass, field
from typing import List, Optional

from .json_data import JsonData, SparseJsonData
from .run_spec import RestartPolicy, RunSpec
from .task_command import TaskAddress

IDLE, RUNNING, EXITED = "idle", "running", "exited"
"""Phases of a launcher's program."""

PREPARE, WAIT, RUN, STOP, END, NOTHING = "prepare", "wait", "run", "stop", "end", "nothing"
"""What an order asks for: fetch the code and find a port; run no program; run the program of this attempt; stop the program;
stop it and exit; nothing, because there is no run yet."""

STOPPED, REPLACED, INTERRUPTED = "stopped", "replaced", "interrupted"
"""Why a launcher ended its program: by an order, for another attempt, because it received a signal itself."""


@dataclass(frozen=True)
class UploadRequest(JsonData):
    """What a launcher uploads: before it exits, all artifacts; while its program runs, the newest checkpoints."""

    run_id: str
    train_dir: str
    patterns: List[str] = field(default_factory=list)
    """What is uploaded: glob patterns below `train_dir`."""
    interval: float = 0.0
    """While the program runs: upload a checkpoint when it has changed, and wait so many seconds before the next one. 0 at the end."""


@dataclass(frozen=True)
class Order(SparseJsonData):
    """What a launcher should do now. It describes a state, so that a repeated or a lost order does no harm."""

    action: str
    grace: float = 0.0
    """Seconds between SIGTERM and SIGKILL."""
    run_id: str = ""
    attempt: int = 0
    spec: Optional[RunSpec] = None
    """For `prepare`."""
    port: int = 0
    """For `prepare`: the port that the task had; 0 for any."""
    address_book: List[TaskAddress] = field(default_factory=list)
    """For `run`."""
    poll: float = 0.0
    """Seconds until the next sync."""
    generation: int = 0
    """This launcher's, for its further reports."""
    upload: Optional[UploadRequest] = None
    """Upload this, and report again: for `run` beside the program, else before it ends, or before its machine is shut down."""
    restart: Optional[RestartPolicy] = None
    """While the controller is away, the launcher starts a program that has failed again by this policy; None: it waits."""
    failures: int = 0
    """How many failures before the present attempt, or the one that ended last, count for that policy."""
    dump: int = 0
    """The number of the dump that it should send, once; 0 for none."""
