"""`tfdeploy heal`: restore lost resources. Pulumi does it; this checks before that it would do nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...backends.base import load
from ...errors import BackendError, CommandError, NotFound, SpecError
from ...registry import Entry, login
from ...units import counted, moment
from ..common import print_json, print_message, print_prose, print_result
from ..heal_plan import HealPlan, heal_plan
from ..pulumi import error_of, is_locked, locked_error, preview, stream_pulumi
from ..select import ClusterQuery, select_clusters
from ..snapshot import take_snapshot

_REFRESH = "--refresh"


def heal(
    query: ClusterQuery,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be restored.", show_default=False)
    ] = False,
) -> None:
    """Restore lost tasks, controllers and machines.

    They are created again with the same settings. If the program or its configuration was edited since the last update, the command
    prints the edits and changes nothing: use `pulumi up`. If the run has ended, nothing is restored. The command does not wait for the
    run.
    """
    entries = select_clusters(query)
    _refuse_destroyed(entries)
    first = entries[0]
    title = f"{first.cluster['project']}/{first.cluster['stack']}"
    if all(take_snapshot(entry).report.decided for entry in entries):
        _print(query, [], f"{title}: the run has ended, so nothing is restored.")
        return
    folder, stack = Path(first.folder), first.cluster["stack"]
    if is_locked(first.cluster["project"], stack, login()):
        raise locked_error(stack)
    refresh = any(_REFRESH in load(entry.cluster["backend"]).heal_command for entry in entries)
    plan = heal_plan(preview(folder, stack, refresh))
    _refuse_edits(title, plan)
    names = ", ".join(plan.restored)
    if not plan.restored:
        _print(query, [], f"{title}: nothing is lost.")
    elif dry_run:
        _print(query, plan.restored, f"{title}: would restore {names}.")
    else:
        _update(query, folder, stack, refresh)
        _print(query, plan.restored, f"{title}: restored {counted(len(plan.restored), 'resource')}: {names}.")


def _refuse_destroyed(entries: Sequence[Entry]) -> None:
    for entry in entries:
        if entry.ended:
            raise NotFound(f"{entry.title} was destroyed at {moment(entry.ended)}. `pulumi up` creates it again.")


def _refuse_edits(title: str, plan: HealPlan) -> None:
    if plan.edits:
        wrong = f"an update would do more than restore: {'; '.join(plan.edits)}"
        raise SpecError(title, wrong, "Run `pulumi up` to apply these edits too, or undo them.")


def _update(query: ClusterQuery, folder: Path, stack: str, refresh: bool) -> None:
    arguments = ["up", "--yes", "--skip-preview", "--stack", stack, *([_REFRESH] if refresh else [])]
    print_line = print_message if query.as_json else print_result
    exit_code, lines = stream_pulumi(folder, arguments, print_line, TFDEPLOY_WAIT="0")
    if exit_code:
        error = error_of(stack, folder, exit_code, lines)
        if isinstance(error, CommandError) and not query.as_json:  # its lines are on the screen
            error = BackendError(f"{stack}: `pulumi up` failed with exit code {exit_code}; see its output above.")
        raise error


def _print(query: ClusterQuery, restored: Sequence[str], message: str) -> None:
    if query.as_json:
        print_json({"restored": list(restored), "message": message})
    else:
        print_prose(message)
