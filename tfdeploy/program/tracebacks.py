"""Errors of tfdeploy in the processes that Pulumi starts: a sentence, where Pulumi prints a traceback.

Pulumi runs the user's program in one process and the dynamic resources in another one. `TFDEPLOY_DEBUG=1` has the tracebacks.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from types import TracebackType

_PROGRAM = "pulumi-language-python-exec"
_PLUGIN = "pulumi.dynamic.__main__"

_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def hide() -> None:
    """Have the errors of this process printed as sentences, if Pulumi has started it."""
    if os.environ.get("TFDEPLOY_DEBUG"):
        return
    if is_plugin():
        sys.tracebacklimit = 0  # it prints the exception alone
    elif any(_PROGRAM in part for part in sys.orig_argv):
        sys.excepthook = partial(_print_exception, sys.excepthook)


def is_plugin() -> bool:
    """Whether this is the process of the dynamic resources."""
    return getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", "") == _PLUGIN


def _print_exception(
    previous: _Hook, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Pulumi interrupts the program when a resource has failed, and has printed why. Other errors are for the `previous` hook, which
    the program may have set."""
    if not issubclass(kind, KeyboardInterrupt):
        previous(kind, error, trace)
