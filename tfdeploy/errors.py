"""Exceptions raised by tfdeploy.

They have one root, `TfdeployError`; each leaf is also the Python error that a caller would expect. A message names
the place, what is wrong, the value that was given, and how to fix it.
"""

import errno
import re
from collections.abc import Sequence

TAIL_LINES = 20
"""Number of last output lines in the message of a failed command."""

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

_LISTED = 13
"""Longer lists of names are not shown in full."""


_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""Colours, movements, and control characters but for tabs: Pulumi prints a message to the terminal as it is."""


class TfdeployError(Exception):
    """The root of all errors that tfdeploy raises on purpose."""


class SpecError(TfdeployError, ValueError):
    """An argument, or a value of the stack's configuration, that is not valid.

    Attributes:
        where: the cluster and the argument, such as `mnist: ec2.instance_type`.
        wrong: what is wrong with it.
        remedy: how to fix it.
    """

    def __init__(self, where: str, wrong: str, remedy: str) -> None:
        super().__init__(f"{where}: {wrong}. {remedy}")
        self.where = where
        self.wrong = wrong
        self.remedy = remedy


class UsageError(TfdeployError, ValueError):
    """A command that was not typed as it must be: what is wrong, and what to type."""


class BundleError(SpecError):
    """A code folder that cannot be shipped."""


class EmptyBundle(BundleError):
    """A code folder of which nothing is shipped."""


class PlacementError(SpecError):
    """Tasks that do not fit on the available machines."""


class BackendError(TfdeployError, RuntimeError):
    """A request that an engine, a cloud or a process manager did not perform."""


class CommandError(BackendError):
    """A command that failed, with its exit code and the last lines of its output."""

    def __init__(self, what: str, exit_code: int, output: Sequence[str]) -> None:
        tail = "\n".join(f"  {_CONTROL.sub('', line)}" for line in output[-TAIL_LINES:])
        super().__init__(f"{what} failed with exit code {exit_code}. Its last lines:\n{tail}")
        self.exit_code = exit_code
        self.output = tuple(output)


class Unreachable(BackendError, ConnectionError):
    """An engine or a controller that does not respond."""


class Forbidden(Unreachable):
    """What the user may not do at an engine that responds."""


class NotStarted(BackendError):
    """A container that its engine does not start, with the engine's reason."""


class NotFound(TfdeployError, LookupError):
    """A cluster, a task or a machine that does not exist."""


def file_error(error: OSError) -> str:
    """An error of the operating system about a file, as a sentence."""
    remedy = "Free space on that disk, and run the command again." if error.errno in DISK_FULL else ""
    return f"{error.filename or 'a file'}: {error.strerror or error}. {remedy}".rstrip()


def nearest(name: str, names: Sequence[str], listing: str = "") -> str:
    """The remedy for an unknown name: the most similar name, else all names, or `listing` where there are many."""
    import difflib

    similar = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if similar:
        return f"Did you mean {similar[0]!r}?"
    return listing if listing and len(names) > _LISTED else f"Use one of: {', '.join(names)}."
