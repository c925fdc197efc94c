"""The `tfdeploy` command: how it is called, and what errors become."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .command_table import FAILED, INTERNAL, INTERRUPTED, NOT_FOUND, UNREACHABLE, USAGE, overview

if TYPE_CHECKING:
    from .cluster_selection import ClusterQuery

COMPLETE = "_TFDEPLOY_COMPLETE"
"""The environment variable by which a shell requests what completes a word."""


def main() -> None:
    """Run a command. An error becomes a message and an exit code."""
    exit_with(call, "tfdeploy")


def call(words: Sequence[str]) -> None:
    """Call a command with its options. Those that select a cluster may stand before its name too."""
    if list(words) in ([], ["help"], ["--help"], ["-h"]) and COMPLETE not in os.environ:
        print(overview(), end="")
        return
    from . import completion
    from .parser import top_parser

    if COMPLETE in os.environ:
        print(*completion.candidates(words, os.environ[COMPLETE]), sep="\n")
        return

    given = top_parser().parse(words, has_remainder=True)
    before = words[: len(words) - len(given.words)]
    name, *rest = given.words or ["help"]
    if given.version or name == "version":
        from .. import registry

        print(f"tfdeploy {registry.versions().get('pulumi-tfdeploy', 'from source')}")
    elif given.show_completion is not None:
        print(completion.script(given.show_completion), end="")
    elif given.install_completion is not None:
        print(f"{completion.install(given.install_completion)} was changed. Start a new shell.")
    elif given.help or (name == "help" and not rest):
        print(overview(), end="")
    elif name == "help":
        _call_command(rest[0], ["--help"])
    else:
        _call_command(name, [*before, *rest])


def _call_command(name: str, words: Sequence[str]) -> None:
    from .parser import command_parser, find_command

    verb = find_command(name)
    parser, function = command_parser(verb, name)
    options = parser.parse(words, verb.runs_command)
    if verb.common:
        function(_query(vars(options)), **vars(options))
    else:
        function(options)


def _query(options: dict[str, Any]) -> "ClusterQuery":
    """The common options, which are taken from these."""
    from .cluster_selection import ClusterQuery

    form = options.pop("output", None)
    selection = {name: options.pop(name) for name in ("cwd", "stack", "cluster") if name in options}
    return ClusterQuery(**selection, as_json=options.pop("as_json", False) or form == "json", wide=form == "wide")


def exit_with(command: Callable[[Sequence[str]], object], name: str) -> None:
    """Call a command of this name with the arguments of this process. An error becomes a message and an exit code."""
    _replace_unprintable()
    try:
        command(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except Exception as error:
        if os.environ.get("TFDEPLOY_DEBUG"):
            raise
        from .output import print_message

        code, message = _ending(error)
        print_message(f"{name}: {message}")
        sys.exit(code)


def _replace_unprintable() -> None:
    """Print a replacement for a character that the terminal's encoding does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def _ending(error: Exception) -> tuple[int, str]:
    """The exit code for an error, and its message."""
    from ..agent.record.record import RecordFormatError
    from ..errors import DISK_FULL, NotFound, SpecError, TfdeployError, Unreachable, UsageError, file_error

    codes = {
        NotFound: NOT_FOUND,
        Unreachable: UNREACHABLE,
        SpecError: USAGE,
        UsageError: USAGE,
        TfdeployError: FAILED,
        RecordFormatError: FAILED,  # the record was written by another version
    }
    code = next((code for kind, code in codes.items() if isinstance(error, kind)), INTERNAL)
    if code != INTERNAL:
        return code, str(error)
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return code, file_error(error)
    return code, f"internal error: {error!r}. Please report it; `tfdeploy --debug …` prints the traceback."
