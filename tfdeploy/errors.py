"""Every way tfdeploy says no.

One root, `TfdeployError`; each leaf is also the Python error that a caller would expect. A message says where,
what is wrong, what was given, and what would do.
"""

from collections.abc import Sequence

TAIL_LINES = 20
"""How many last lines of a failed command a message carries."""


class TfdeployError(Exception):
    """The root of all errors that tfdeploy raises on purpose."""


class SpecError(TfdeployError, ValueError):
    """An argument, or a value of the stack's configuration, that cannot be what the user wants.

    Attributes:
        where: the cluster and the argument, such as `mnist: workers`.
        wrong: what is wrong with it.
        remedy: what would do instead.
    """

    def __init__(self, where: str, wrong: str, remedy: str) -> None:
        super().__init__(f"{where}: {wrong}. {remedy}")
        self.where = where
        self.wrong = wrong
        self.remedy = remedy


class BundleError(SpecError):
    """A code folder that cannot be shipped."""


class PlacementError(SpecError):
    """Tasks that do not fit on the machines that there are."""


class BackendError(TfdeployError, RuntimeError):
    """An engine that did not do what it was asked to do."""


class CommandError(BackendError):
    """A command that failed, with its exit code and the last lines of what it printed."""

    def __init__(self, what: str, exit_code: int, output: Sequence[str]) -> None:
        tail = "\n".join(f"  {line}" for line in output[-TAIL_LINES:])
        super().__init__(f"{what} failed with exit code {exit_code}. Its last lines:\n{tail}")
        self.exit_code = exit_code
        self.output = tuple(output)


class Unreachable(BackendError, ConnectionError):
    """An engine or a keeper that does not answer."""


class NotFound(TfdeployError, LookupError):
    """A cluster, a task or a machine of a name that there is none of."""
