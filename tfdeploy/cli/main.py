"""The `tfdeploy` command: how it is called, and what errors become."""

import gc
import io
import os
import sys
from collections.abc import Callable, Sequence

from ..errors import DISK_FULL, NotFound, SpecError, TfdeployError, Unreachable, UsageError, file_error
from .command_table import complete_function, completed_names, overview
from .exit_codes import FAILED, INTERNAL, INTERRUPTED, NOT_FOUND, UNREACHABLE, USAGE
from .usage_errors import arguments_in_order

_NAME = "tfdeploy"
_COMPLETION = "_TFDEPLOY_COMPLETE"
"""The environment variable with which a shell asks for the completion of a word."""

_ALLOCATIONS = 100_000
"""Python looks for garbage after so many allocations instead of 700: most commands end before, and are 4 % faster."""


def main() -> None:
    """Run a command. An error becomes a message and an exit code."""
    gc.set_threshold(_ALLOCATIONS)
    exit_with(_call, _NAME)


def _call(arguments: Sequence[str]) -> object:
    """Call a command. Typer, which takes longer to load than most commands take, is loaded where there are options to parse."""
    completion = os.environ.get(_COMPLETION)
    if completion == "complete_bash" and (names := completed_names(os.environ)) is not None:
        return print(*names, sep="\n")
    words = [] if completion else arguments_in_order(arguments)
    if words in (["--help"], ["-h"]):
        return sys.stdout.write(overview()) and None
    if len(words) == 1 and (function := complete_function(words[0])):
        return function()
    from .typer_app import app, call

    return call(app, _NAME, arguments)


def exit_with(command: Callable[[Sequence[str]], object], name: str) -> None:
    """Call a command of this name with the arguments of this process. An error becomes a message and an exit code."""
    _replace_unprintable()
    try:
        code = command(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except Exception as error:
        if os.environ.get("TFDEPLOY_DEBUG"):
            raise
        from .common import print_message

        print_message(f"{name}: {_message(error)}")
        sys.exit(_exit_code(error))
    if isinstance(code, int) and code:
        sys.exit(code)


def _replace_unprintable() -> None:
    """Print a replacement for a character that the terminal's encoding does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def _message(error: Exception) -> str:
    if isinstance(error, TfdeployError) or _is_of_another_format(error):
        return str(error)
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return file_error(error)
    return f"internal error: {error!r}. Please report it; `tfdeploy --debug …` prints the traceback."


def _exit_code(error: Exception) -> int:
    codes = {
        NotFound: NOT_FOUND,
        Unreachable: UNREACHABLE,
        SpecError: USAGE,
        UsageError: USAGE,
        TfdeployError: FAILED,
    }
    unknown = FAILED if _is_of_another_format(error) else INTERNAL
    return next((code for kind, code in codes.items() if isinstance(error, kind)), unknown)


def _is_of_another_format(error: Exception) -> bool:
    """Whether a record was written by another version."""
    from ..agent.record.record import RecordFormatError

    return isinstance(error, RecordFormatError)
