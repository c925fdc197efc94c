"""`tfdeploy wait`: until the job is over."""

import time
from typing import Annotated

import typer

from .. import registry
from .asking import FAILED, NOT_OVER, Asked, answer, limit, tell
from .finding import one
from .looking import look, over
from .show import document

_POLL_SECONDS = 0.5
_SUCCEEDED = "succeeded"


def wait(
    asked: Asked,
    timeout: Annotated[str, typer.Option(help="Wait so long at most, such as 10m.", show_default="no limit")] = "",
) -> None:
    """Wait until the job is over: exit code 0 when it succeeded, 1 when not, 5 when it is not over in time."""
    deadline = time.monotonic() + limit(timeout)
    entry = one(asked)
    seen = look(entry)
    while not over(seen) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        seen = look(registry.known(entry))
    if asked.as_json:
        answer(document(seen))
    found = seen.report
    tell(f"{entry.title}: {found.state}" + (f": {found.reason}" if found.reason else ""))
    if not found.decided and not seen.entry.ended:
        raise typer.Exit(NOT_OVER)
    if found.state != _SUCCEEDED:
        raise typer.Exit(FAILED)
