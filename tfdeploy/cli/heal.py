"""`tfdeploy heal`: bring back what died, and only that. Pulumi does it; here it is seen that it does nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..backends.base import load
from ..errors import BackendError, NotFound, SpecError
from ..quantities import counted
from ..registry import Entry, login
from ..report import moment
from .asking import Asked, answer, say, tell
from .finding import several
from .looking import look
from .mending import Mending, mending
from .pulumi_command import follow, locked, locked_error, preview, refusal

_REFRESH = "--refresh"


def heal(
    asked: Asked,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would come back.", show_default=False)
    ] = False,
) -> None:
    """Bring back what died, as it was, and nothing else: tasks, the keeper, machines on EC2.

    Where the program or its settings were edited meanwhile it refuses, and names the edit: `pulumi up` applies that. A job that is
    over needs nothing. The job is not waited for.
    """
    entries = several(asked)
    _refuse_ended(entries)
    title = "/".join((entries[0].cluster["project"], entries[0].cluster["stack"]))
    if all(look(entry).report.decided for entry in entries):
        _tell(asked, [], f"{title}: the job is over, so nothing is brought back.")
        return
    folder, stack = Path(entries[0].folder), entries[0].cluster["stack"]
    if locked(entries[0].cluster["project"], stack, login()):
        raise locked_error(stack)
    refresh = any(_REFRESH in load(entry.cluster["backend"]).heal for entry in entries)
    found = mending(preview(folder, stack, refresh))
    _refuse_edits(title, found)
    if not found.back:
        _tell(asked, [], f"{title}: nothing has died.")
    elif dry_run:
        _tell(asked, found.back, f"{title}: these would come back: {', '.join(found.back)}.")
    else:
        _bring_back(asked, folder, stack, refresh)
        _tell(
            asked, found.back, f"{title}: {counted(len(found.back), 'resource')} brought back: {', '.join(found.back)}."
        )


def _refuse_ended(entries: Sequence[Entry]) -> None:
    for entry in entries:
        if entry.ended:
            raise NotFound(f"{entry.title} was destroyed at {moment(entry.ended)}. `pulumi up` makes it again.")


def _refuse_edits(title: str, found: Mending) -> None:
    if found.edits:
        remedy = "Run `pulumi up` to apply that too, or undo the edit."
        raise SpecError(title, f"an update would do more than bring back what died: {'; '.join(found.edits)}", remedy)


def _bring_back(asked: Asked, folder: Path, stack: str, refresh: bool) -> None:
    arguments = ["up", "--yes", "--skip-preview", "--stack", stack, *([_REFRESH] if refresh else [])]
    code, lines = follow(folder, arguments, tell if asked.as_json else say, TFDEPLOY_WAIT="0")
    if code:
        found = refusal(stack, folder, code, lines)
        raise found if asked.as_json or not isinstance(found, BackendError) else _short(stack, found)


def _short(stack: str, found: BackendError) -> BackendError:
    """The same without the lines that the user has seen already."""
    code = getattr(found, "exit_code", None)
    return (
        found
        if code is None
        else BackendError(f"{stack}: `pulumi up` failed with exit code {code}; it says why above.")
    )


def _tell(asked: Asked, back: Sequence[str], text: str) -> None:
    if asked.as_json:
        answer({"back": list(back), "told": text})
    else:
        say(text)
