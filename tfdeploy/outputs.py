"""The types of the outputs of a `TensorFlowCluster`."""

from typing import Optional, TypedDict

# Pulumi's component analyzer reads `Optional`, and no `|`.
# ruff: noqa: UP045


class TaskRow(TypedDict):
    """One task."""

    hostname: str
    """The name of the task, such as worker-0."""

    job: str
    """The job of the task."""

    index: int
    """The index of the task in its job."""

    machine: str
    """The machine on which the task runs."""

    container: str
    """The id of the container; on `local` the id of the process."""

    command: str
    """The command of the task."""

    status: str
    """The status of the task, such as `running` or `failed (exit 3)`."""

    exit_code: Optional[int]
    """The exit code; None while the task has not exited."""

    created: str
    """The time at which the task was created (UTC)."""

    address: str
    """The address at which other tasks reach this one: host:port."""

    public_ip: str
    """The public IP address of the machine."""


class MachineRow(TypedDict):
    """One machine."""

    machine: str
    """The name of the machine."""

    role: str
    """Master or Worker: whether the machine manages the cluster."""

    provider: str
    """The provider of the machine."""

    region: str
    """The region of the machine."""

    size: str
    """The instance type, or CPUs and memory."""

    public_ip: str
    """The public IP address."""

    status: str
    """The status of the machine, such as `connected`."""


class ArtifactRow(TypedDict):
    """One artifact of the run, or one that could not be stored."""

    name: str
    """The path below `train_dir`: the folder of a model, a file, or a checkpoint without the suffixes of its files. For other files
    the pattern of `artifacts`."""

    kind: str
    """model (a SavedModel), keras, checkpoint, weights (HDF5) or files; empty if it could not be stored."""

    size: int
    """The size in bytes."""

    path: str
    """Where it is on this computer: a folder or a file; for a checkpoint its prefix, as `tf.train.Checkpoint.restore` takes it. Empty
    if it is not there."""

    problem: str
    """Why it is not there, and what to do; empty if it is."""


class CostSummary(TypedDict, total=False):
    """The cost of the machines on `ec2`; empty on other backends. A price that is unknown is None."""

    currency: str
    """The currency of all amounts."""

    per_hour: Optional[float]
    """The cost per hour of the planned machines; 0 when none exists."""

    spent: Optional[float]
    """The cost so far, of all runs of the cluster."""

    maximum: Optional[float]
    """The highest cost of the planned machines until they terminate themselves; None also if they never do."""

    summary: str
    """The same as a sentence."""

    prices_date: str
    """The date of the prices."""

    billed_after: list[str]
    """What is billed after the machines are terminated."""

    idle_timeout: float
    """Seconds without tasks after which a machine terminates itself; 0 for never."""

    max_lifetime: float
    """Seconds after which a machine terminates itself in any case; 0 for never."""
