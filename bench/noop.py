"""An `up --skip-preview` of a finished cluster whose program has not changed, against the same command on `bench/baselines/fleet`, a
program with as many dynamic resources, about as large, which do nothing.
"""

from .engine import CLUSTER, FLEET, UP, Project, project, workplace
from .pairs import by_turns
from .processes import BenchError, last_lines
from .table import Row, ratio

_PAIRS = 12
_WORKERS = 3
_NO_STEP = f"{5 + _WORKERS + 1} unchanged"


def run() -> list[Row]:
    """A finished cluster, updated repeatedly."""
    config = {"tfdeploy:ps": 1, "tfdeploy:workers": _WORKERS, "tfdeploy:command": ["python", "quick.py"]}
    with (
        workplace() as place,
        project(place, CLUSTER, "ours", config) as made,
        project(place, FLEET, "bare", {"fleet:tasks": 1 + _WORKERS}) as bare,
    ):
        made.ship("quick.py")
        for each in (made, bare):
            each.pulumi(*UP)
            _refuse_steps(each)
        mine, other = by_turns(_PAIRS, "no-op up", lambda: made.pulumi(*UP), lambda: bare.pulumi(*UP))
    measure = f"no-op `up`, 1 ps + {_WORKERS} workers, against a bare program with as many resources"
    return [ratio(measure, mine, other, 1.15)]


def _refuse_steps(made: Project) -> None:
    printed = made.call(*UP)
    if _NO_STEP not in printed:
        raise BenchError(f"expected {_NO_STEP!r} from a second `up`:\n{last_lines(printed)}")
