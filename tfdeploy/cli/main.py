"""The command itself: the verbs, and what becomes of errors."""

import os
import sys
from collections.abc import Callable

import typer

from ..errors import NotFound, SpecError, TfdeployError, Unreachable
from . import (
    doctor,
    endpoints,
    entering,
    events,
    explain,
    heal,
    leftovers,
    logs,
    options,
    report,
    restart,
    run,
    show,
    tunnel,
    wait,
)
from .asking import FAILED, INTERRUPTED, NOT_FOUND, UNREACHABLE, USAGE, tell, verb

VERBS: tuple[Callable[..., None], ...] = (
    show.show,
    logs.logs,
    events.events,
    explain.explain,
    wait.wait,
    endpoints.endpoints,
    tunnel.tunnel,
    report.report,
    restart.restart,
    restart.replace,
    entering.exec_,
    entering.ssh,
    heal.heal,
    leftovers.leftovers,
    doctor.doctor,
    options.options,
)

_SOFTWARE = 70
"""What sysexits.h calls EX_SOFTWARE."""

app = typer.Typer(
    name="tfdeploy",
    help="See, and steer, TensorFlow clusters that a Pulumi program has declared.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _verb in VERBS:
    app.command(_verb.__name__.rstrip("_"))(verb(_verb))
# What follows the options is somebody else's command, with options of its own; and which stack it is about is not asked.
app.command(context_settings={"allow_interspersed_args": False})(run.run)


@app.callback()
def main_options(
    debug: bool = typer.Option(False, "--debug", help="Show where an error comes from.", show_default=False),
) -> None:
    """See, and steer, TensorFlow clusters that a Pulumi program has declared."""
    if debug:
        os.environ["TFDEPLOY_DEBUG"] = "1"


def main() -> None:
    """Run a verb; an error becomes one sentence and an exit code."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except Exception as error:
        if os.environ.get("TFDEPLOY_DEBUG"):
            raise
        tell(f"tfdeploy: {_sentence(error)}")
        sys.exit(_code(error))


def _sentence(error: Exception) -> str:
    if isinstance(error, TfdeployError):
        return str(error)
    return f"a fault of tfdeploy's own: {error!r}. `tfdeploy --debug …` shows where; please report it."


def _code(error: Exception) -> int:
    codes = {NotFound: NOT_FOUND, Unreachable: UNREACHABLE, SpecError: USAGE, TfdeployError: FAILED}
    return next((code for kind, code in codes.items() if isinstance(error, kind)), _SOFTWARE)
