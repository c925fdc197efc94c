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
    main = sys.modules.get("__main__")
    if is_plugin() and hasattr(main, "traceback"):
        main.traceback = _Sentences  # type: ignore[union-attr]
    elif any(_PROGRAM in part for part in sys.orig_argv):
        sys.excepthook = partial(_print_exception, sys.excepthook)


def is_plugin() -> bool:
    """Whether this is the process of the dynamic resources."""
    return getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", "") == _PLUGIN


class _Sentences:
    """What the process of the dynamic resources uses of the module `traceback`."""

    @staticmethod
    def format_exc() -> str:
        """The present error, for the user."""
        import traceback  # every command imports this module

        return text_of(sys.exc_info()[1]) or traceback.format_exc()


def text_of(error: BaseException | None) -> str:
    """An error that tfdeploy raised, or a full disk, as a sentence; empty for others, which are errors of a program."""
    from ..errors import DISK_FULL, TfdeployError, file_error  # not needed by who only imports the package

    if isinstance(error, TfdeployError):
        return str(error)
    return file_error(error) if isinstance(error, OSError) and error.errno in DISK_FULL else ""


def _print_exception(
    previous: _Hook, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Pulumi interrupts the program when a resource has failed, and has printed why. Other errors are for the `previous` hook, which
    the program may have set."""
    if not issubclass(kind, KeyboardInterrupt):
        previous(kind, error, trace)
