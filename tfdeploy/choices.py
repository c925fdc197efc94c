"""The arguments that take one of a few values. The spec has the same values (`tests/unit/test_arg_docs.py`)."""

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

# Pulumi's component analyzer takes enums and no `Literal`; type checkers take the plain strings that people write.
if TYPE_CHECKING:
    Backend = Literal["local", "docker", "ec2", "kubernetes"]
    FlagRule = Literal["auto", "always", "never"]
    SuccessRule = Literal["chief", "worker-0", "all-workers"]
    Network = Literal["overlay", "host"]
    MachineLayout = Literal["per-task", "packed"]
    Connectivity = Literal["public", "private", "ssm"]
else:

    class Backend(StrEnum):
        """Where tasks run."""

        LOCAL = "local"
        DOCKER = "docker"
        EC2 = "ec2"
        KUBERNETES = "kubernetes"

    class FlagRule(StrEnum):
        """Whether the four flags are appended to the command."""

        AUTO = "auto"
        ALWAYS = "always"
        NEVER = "never"

    class SuccessRule(StrEnum):
        """Which tasks must succeed for the run to succeed."""

        CHIEF = "chief"
        WORKER_0 = "worker-0"
        ALL_WORKERS = "all-workers"

    class Network(StrEnum):
        """The network of containers."""

        OVERLAY = "overlay"
        HOST = "host"

    class MachineLayout(StrEnum):
        """How tasks share EC2 instances."""

        PER_TASK = "per-task"
        PACKED = "packed"

    class Connectivity(StrEnum):
        """How tfdeploy connects to EC2 instances."""

        PUBLIC = "public"
        PRIVATE = "private"
        SSM = "ssm"
