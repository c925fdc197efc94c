"""`tfdeploy restart` and `tfdeploy replace`: a task starts again, by the user's word."""

import sys
from typing import Annotated

import typer

from ..backends.access import access
from ..errors import SpecError
from . import completing
from .asking import Asked, answer, say, tell
from .finding import standing

Hostname = Annotated[
    str,
    typer.Argument(help="The task, such as worker-0.", show_default=False, autocompletion=completing.hostnames),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.", show_default=False)]


def restart(asked: Asked, hostname: Hostname, yes: Yes = False) -> None:
    """Start a task again where it stands, as after a failure; volumes and checkpoints stay.

    What happens to data is said before. It counts as no failure, and the other tasks go on.
    """
    _again(asked, hostname, yes, False)


def replace(asked: Asked, hostname: Hostname, yes: Yes = False) -> None:
    """Start a task again without what it keeps for itself: volumes that no other task mounts are removed.

    What happens to data is said before. It counts as no failure, and the other tasks go on; checkpoints stay.
    """
    _again(asked, hostname, yes, True)


def _again(asked: Asked, hostname: str, yes: bool, anew: bool) -> None:
    cluster = standing(asked).cluster
    hands = access(cluster["backend"])
    means = hands.means(cluster, hostname, anew)
    tell(means)
    _agreed(yes)
    (hands.replace if anew else hands.restart)(cluster, hostname)
    done = f"{hostname} is {'replaced' if anew else 'restarted'}."
    if asked.as_json:
        answer({"hostname": hostname, "did": "replace" if anew else "restart", "means": means})
    else:
        say(done)


def _agreed(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise SpecError("--yes", "nobody can be asked here", "Give it to go on without a question.")
    typer.confirm("Go on?", abort=True, err=True)
