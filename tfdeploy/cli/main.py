"""The `tfdeploy` command: its subcommands, and what errors become."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

import typer

from .. import registry
from ..agent.record import RecordFormatError
from ..errors import DISK_FULL, NotFound, SpecError, TfdeployError, Unreachable, file_error
from .commands import (
    cp,
    diff,
    doctor,
    endpoints,
    events,
    exec,
    explain,
    heal,
    iam_policy,
    leftovers,
    logs,
    ls,
    options,
    port_forward,
    report,
    restart,
    runs,
    status,
    stop,
    top,
    tunnel,
    wait,
)
from .common import (
    EXIT_CODES,
    FAILED,
    INTERNAL,
    INTERRUPTED,
    NOT_FOUND,
    UNREACHABLE,
    USAGE,
    print_message,
    print_result,
    with_common_options,
)
from .run import command

ALL = frozenset({"cwd", "stack", "cluster", "as_json", "output"})
"""The options that select clusters and the format of the result."""

_NO_RESULT = frozenset({"as_json", "output"})
_WHOLE_STACK = frozenset({"cluster"})
_NO_CLUSTER = frozenset({"cwd", "stack", "cluster"})


@dataclass(frozen=True)
class Verb:
    """One command of `tfdeploy`."""

    function: Callable[..., None]
    without: frozenset[str] = frozenset()
    """The common options that would mean nothing here."""
    wide: bool = False
    """Whether its table has a form with all columns."""
    aliases: tuple[str, ...] = ()
    runs_command: bool = False
    """Whether what follows its first argument is the user's command, with its own options."""

    @property
    def name(self) -> str:
        """What the user types."""
        return self.function.__name__.rstrip("_").replace("_", "-")


GROUPS: dict[str, tuple[Verb, ...]] = {
    "Observe": (
        Verb(status.status, wide=True, aliases=("ps", "show")),
        Verb(ls.ls, without=_NO_CLUSTER, wide=True),
        Verb(runs.runs, wide=True),
        Verb(diff.diff),
        Verb(logs.logs),
        Verb(events.events),
        Verb(explain.explain),
        Verb(top.top, wide=True),
        Verb(endpoints.endpoints, wide=True),
        Verb(report.report),
    ),
    "Control": (
        Verb(wait.wait),
        Verb(stop.stop),
        Verb(restart.restart),
        Verb(restart.replace),
        Verb(heal.heal, without=_WHOLE_STACK),
    ),
    "Connect": (
        Verb(exec.exec_, without=_NO_RESULT, runs_command=True),
        Verb(cp.cp),
        Verb(exec.ssh, without=_NO_RESULT),
        Verb(tunnel.tunnel),
        Verb(port_forward.port_forward),
    ),
    "Maintain": (
        Verb(leftovers.leftovers, wide=True),
        Verb(doctor.doctor, without=_WHOLE_STACK),
        Verb(options.options, without=_NO_CLUSTER),
        Verb(iam_policy.iam_policy, without=_NO_RESULT),
    ),
}
"""The heading of each group in `tfdeploy --help`, and its commands."""

_SUMMARY = "Inspect and control TensorFlow clusters."

app = typer.Typer(
    name="tfdeploy",
    help=_SUMMARY,
    epilog="\n".join(["Exit codes:", *(f"{code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())]),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _group, _verbs in GROUPS.items():
    for _verb in _verbs:
        _command = with_common_options(_verb.function, ALL - _verb.without, _verb.wide)
        _settings = {"allow_interspersed_args": not _verb.runs_command}
        app.command(_verb.name, rich_help_panel=_group, context_settings=_settings)(_command)
        for _alias in _verb.aliases:
            app.command(_alias, hidden=True)(_command)
# `run` makes its own stack, so it has no options that select a cluster. What follows its own options is the user's command.
app.command(context_settings={"allow_interspersed_args": False}, rich_help_panel="Control")(command.run)


def _print_version(wanted: bool) -> None:
    if wanted:
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


def call(command: Callable[[], None], name: str) -> None:
    """Call a command of this name. An error becomes a message and an exit code."""
    try:
        command()
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


def _message(error: Exception) -> str:
    if isinstance(error, (TfdeployError, RecordFormatError)):
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
        RecordFormatError: FAILED,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), INTERNAL)
