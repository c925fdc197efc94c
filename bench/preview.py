"""A first `preview` of a hundred tasks, against a bare Pulumi program with as many resources; and of four hundred."""

from .engine import CLUSTER, FLEET, Workplace, project, workplace
from .pairs import by_turns
from .table import Row, ratio

_PAIRS = 5
_TASKS = 100
_TIMES = 4


def run() -> list[Row]:
    """Nothing is created."""
    with workplace() as place:
        return [_against_bare(place), _growth(place)]


def _against_bare(place: Workplace) -> Row:
    with (
        project(place, CLUSTER, "ours", _config(_TASKS)) as made,
        project(place, FLEET, "bare", {"fleet:tasks": _TASKS}) as bare,
    ):
        made.ship("quick.py")
        what = f"preview of {_TASKS} tasks"
        mine, other = by_turns(_PAIRS, what, lambda: made.pulumi("preview"), lambda: bare.pulumi("preview"))
    return ratio(f"`preview` of {_TASKS} tasks, against a bare program with as many resources", mine, other, 1.15)


def _growth(place: Workplace) -> Row:
    many = _TIMES * _TASKS
    with project(place, CLUSTER, "growth", _config(_TASKS)) as made:
        made.ship("quick.py")

        def seconds(tasks: int) -> float:
            made.configure(_config(tasks))
            return made.pulumi("preview")

        large, small = by_turns(_PAIRS, f"preview of {many} tasks", lambda: seconds(many), lambda: seconds(_TASKS))
    measure = f"`preview` of {many} tasks, against one of {_TASKS} (at most {_TIMES} times: linear)"
    return ratio(measure, large, small, _TIMES)


def _config(tasks: int) -> dict[str, object]:
    return {"tfdeploy:ps": 1, "tfdeploy:workers": tasks - 1, "tfdeploy:command": ["python", "quick.py"]}
