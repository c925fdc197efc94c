"""The `tfdeploy` command: its subcommands, and what errors become."""

import os
import sys
from collections.abc import Callable

import typer

from ..errors import DISK_FULL, NotFound, SpecError, TfdeployError, Unreachable, file_error
from .command_table import VerbGroup, listed_names
from .common import FAILED, INTERNAL, INTERRUPTED, NOT_FOUND, UNREACHABLE, USAGE, print_message, print_result
from .usage_errors import USAGE_ERROR, usage_message

_SUMMARY = "Inspect and control TensorFlow clusters."

app = typer.Typer(
    name="tfdeploy",
    cls=VerbGroup,
    help=_SUMMARY,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import registry

        print_result(f"tfdeploy {registry.versions().get('pulumi-tfdeploy', 'from source')}")
        raise typer.Exit


@app.callback(help=_SUMMARY)
def main_options(
    debug: bool = typer.Option(False, "--debug", help="Print a traceback on errors.", show_default=False),
    version: bool = typer.Option(
        False, "--version", help="Print the version.", show_default=False, callback=_print_version, is_eager=True
    ),
) -> None:
    """Set the options of all commands."""
    if debug:
        os.environ["TFDEPLOY_DEBUG"] = "1"


def main() -> None:
    """Run a command. An error becomes a message and an exit code."""
    call(app, "tfdeploy")


def call(command: Callable[..., object], name: str) -> None:
    """Call a command of this name. An error becomes a message and an exit code."""
    try:
        code = command(standalone_mode=False, prog_name=name)
    except USAGE_ERROR as error:
        print_message(f"{name}: {usage_message(error, listed_names())}")
        sys.exit(USAGE)
    except typer.Abort:
        print_message("Aborted.")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except Exception as error:
        if os.environ.get("TFDEPLOY_DEBUG"):
            raise
        print_message(f"{name}: {_message(error)}")
        sys.exit(_exit_code(error))
    if isinstance(code, int) and code:
        sys.exit(code)


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
        TfdeployError: FAILED,
    }
    unknown = FAILED if _is_of_another_format(error) else INTERNAL
    return next((code for kind, code in codes.items() if isinstance(error, kind)), unknown)


def _is_of_another_format(error: Exception) -> bool:
    """Whether a record was written by another version."""
    from ..agent.record.record import RecordFormatError

    return isinstance(error, RecordFormatError)
