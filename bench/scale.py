"""What 1,000 tasks on 100 machines need, against 100 tasks on 10: processor time and memory of plan, report and page.

Processor time, not the clock's: what else the machine does matters little.
"""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.unit.cases import inventory, spec
from tests.unit.simulation import World
from tfdeploy.agent.record import RecordView, StoredLine
from tfdeploy.backends.base import EngineTask, ObservedState
from tfdeploy.plan.plan import make_plan
from tfdeploy.plan.scheduler import Machine
from tfdeploy.report.expected import expected_state
from tfdeploy.report.html.content import Content
from tfdeploy.report.html.document import page
from tfdeploy.report.report import report

from .pairs import log
from .table import Row

_TASKS = (10, 100, 1000)
_TASKS_PER_MACHINE = 10
_PS = 1
_LINES = 20
_REPEATS = 5
_LINEAR = 15.0
"""Ten times as many tasks, with a margin."""


class _Need(NamedTuple):
    """The least processor time of some calls, in seconds, and the most memory of one, in bytes."""

    seconds: float
    memory: int


def run() -> list[Row]:
    """A row for each part, and a line for each size."""
    needs = {tasks: _needs(tasks) for tasks in _TASKS}
    for tasks, parts in needs.items():
        texts = (f"{part} {need.seconds * 1000:.1f} ms, {need.memory / 1e6:.1f} MB" for part, need in parts.items())
        log(f"{tasks} tasks on {_machine_count(tasks)} machines: {'; '.join(texts)}")
    *_, small, large = needs.values()
    return [row for part in large for row in _rows(part, large[part], small[part])]


def _rows(part: str, large: _Need, small: _Need) -> list[Row]:
    what = f"{part} of {_TASKS[-1]} tasks, against {_TASKS[-2]} (linear: 10)"
    seconds, memory = large.seconds / small.seconds, large.memory / small.memory
    slow, fast = (f"{need.seconds * 1000:.3g} ms" for need in (large, small))
    big, little = (f"{need.memory / 1e6:.3g} MB" for need in (large, small))
    # Each task is compared with each machine: a hundred times as many pairs.
    target = None if part == "plan" else _LINEAR
    return [
        Row(f"processor time: {what}", slow, fast, [seconds], seconds, target),
        Row(f"memory: {what}", big, little, [memory], memory, _LINEAR),
    ]


def _machine_count(tasks: int) -> int:
    return tasks // _TASKS_PER_MACHINE


def _needs(tasks: int) -> dict[str, _Need]:
    machines = [Machine(f"m{index}", "Worker", "docker", "", 16.0, 64 << 30) for index in range(_machine_count(tasks))]
    args: dict[str, Any] = {"ps": _PS, "workers": tasks - _PS, "jobs": {"worker": {"cpus": 1.0}}}
    args["docker"] = {"host": "unix:///var/run/docker.sock"}
    cluster_spec = spec(**args)
    existing = inventory(cluster_spec, *machines)
    plan = make_plan(cluster_spec, existing, "")
    world = World(workers=tasks - _PS, ps=_PS)
    world.come()
    lines = {
        name: [StoredLine(float(at), 1, f"step {at}: loss 0.{at}") for at in range(_LINES)] for name in world.job.tasks
    }
    view = RecordView(world.now, world.job, lines, events=world.events)
    engine = {name: EngineTask(True, "container", "running") for name in world.job.tasks}
    observed, expected = ObservedState(world.now, view, None, engine), expected_state(plan, cluster_spec)
    shown = report(expected, observed)
    content = Content("bench", "docker", "bench", "bench", shown, world.events, shown.timed)
    return {
        "plan": _need(lambda: make_plan(cluster_spec, existing, "")),
        "report": _need(lambda: report(expected, observed)),
        "page": _need(lambda: page(content)),
    }


def _need(call: Callable[[], object]) -> _Need:
    tracemalloc.start()
    call()
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return _Need(min(_seconds(call) for _ in range(_REPEATS)), memory)


def _seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun
