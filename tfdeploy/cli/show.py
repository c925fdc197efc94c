"""`tfdeploy show`: machines and tasks."""

from dataclasses import asdict
from typing import Any

from .asking import Asked, answer, say
from .finding import several
from .looking import Seen, look
from .tables import tables


def show(asked: Asked) -> None:
    """Show the machines and the tasks of the stack's clusters, as they are now."""
    seen = [look(entry) for entry in several(asked)]
    if asked.as_json:
        answer([document(one) for one in seen])
        return
    for one in seen:
        if len(seen) > 1:
            say(f"{one.entry.title}")
        say(shown(one))


def shown(seen: Seen) -> str:
    """One cluster as text, as wide as the terminal."""
    found = seen.report
    reason = f": {found.reason}" if found.reason else ""
    return f"{tables(found.machines, found.tasks)}\n\nJob {found.state}{reason}."


def document(seen: Seen) -> dict[str, Any]:
    """One cluster as JSON has it: what the component's outputs are, and which cluster it is."""
    found = {key: value for key, value in asdict(seen.report).items() if key not in ("status", "timed", "logs")}
    return {**{key: value for key, value in seen.entry.cluster.items() if key != "home"}, **found}
