"""`tfdeploy restart` and `tfdeploy replace`: a task starts again, by the user's word."""

from ..backends.access import access
from ..errors import SpecError
from .asking import Asked, Hostname, Yes, agree, answer, say, tell
from .finding import standing


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
    agree(yes, "Go on?", SpecError("--yes", "nobody can be asked here", "Give it to go on without a question."))
    (hands.replace if anew else hands.restart)(cluster, hostname)
    done = f"{hostname} is {'replaced' if anew else 'restarted'}."
    if asked.as_json:
        answer({"hostname": hostname, "did": "replace" if anew else "restart", "means": means})
    else:
        say(done)
