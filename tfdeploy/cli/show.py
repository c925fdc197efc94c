"""`tfdeploy show`: machines and tasks."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from .asking import Asked, answer, say
from .finding import several
from .looking import Seen, look
from .tables import tables


def show(
    asked: Asked,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Draw it anew as it changes, with the training's progress, until q.")
    ] = False,
) -> None:
    """Show the machines and the tasks of the stack's clusters, as they are now.

    Watched, it ends by itself when the jobs are over; where there is no terminal, it says each change.
    """
    if watch:
        _watch(asked)
        return
    seen = [look(entry) for entry in several(asked)]
    if asked.as_json:
        answer([document(one) for one in seen])
        return
    for one in seen:
        if len(seen) > 1:
            say(f"{one.entry.title}")
        say(shown(one))


def _watch(asked: Asked) -> None:
    from .watching import watch

    if asked.as_json:
        raise typer.BadParameter(
            "--watch is for people; `tfdeploy events --follow --json` tells programs what changes."
        )
    watch(several(asked), shown)


def shown(seen: Seen) -> str:
    """One cluster as text, as wide as the terminal."""
    found = seen.report
    reason = f": {found.reason}" if found.reason else ""
    return f"{tables(found.machines, found.tasks)}\n\nJob {found.state}{reason}."


def document(seen: Seen) -> dict[str, Any]:
    """One cluster as JSON has it: what the component's outputs are, and which cluster it is."""
    found = {key: value for key, value in asdict(seen.report).items() if key not in ("status", "timed", "logs")}
    return {**{key: value for key, value in seen.entry.cluster.items() if key != "home"}, **found}
