"""What 1,000 tasks on 100 machines need, against 100 tasks on 10: processor time and memory of plan, preview, report and page.

Processor time, not the clock's: what else the machine does matters little.
"""

import gc
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from tests.clusters import cluster_ref
from tests.unit.cases import inventory, spec
from tests.unit.simulation import Launcher, World
from tfdeploy.agent.control import reconcile
from tfdeploy.agent.record.record import RecordView, StoredLine
from tfdeploy.backends.base import EngineTask, ObservedState
from tfdeploy.backends.docker.containers import OVERLAY_CONTROLLER, ControllerPlacement, containers
from tfdeploy.backends.docker.planner import render_containers
from tfdeploy.plan.plan import make_plan
from tfdeploy.plan.scheduler import Machine
from tfdeploy.report.expected import expected_state
from tfdeploy.report.html.document import Content, page
from tfdeploy.report.report import report

from .pairs import log
from .table import Row

SIZES = _SMALL, _LARGE = 100, 1000
_TASKS_PER_MACHINE = 10
_PS = 1
_LINES = 20
_ROUNDS = 9
_LINEAR = 15.0
"""Ten times as many tasks, with a margin."""


def run() -> list[Row]:
    """Two rows for each part."""
    calls = {tasks: parts(tasks) for tasks in SIZES}
    memory = {tasks: {part: memory_of(call) / 1e6 for part, call in by.items()} for tasks, by in calls.items()}
    times: dict[int, dict[str, list[float]]] = {tasks: {part: [] for part in by} for tasks, by in calls.items()}
    for _ in range(_ROUNDS):  # by turns: the clock of the processor is not the same from one second to the next
        for tasks, by in calls.items():
            for part, call in by.items():
                times[tasks][part].append(_seconds(call) * 1000)
    for tasks in SIZES:
        texts = [f"{part} {min(rounds):.1f} ms, {memory[tasks][part]:.1f} MB" for part, rounds in times[tasks].items()]
        log(f"{tasks} tasks on {tasks // _TASKS_PER_MACHINE} machines: {'; '.join(texts)}")
    once = {tasks: {part: [value] for part, value in by.items()} for tasks, by in memory.items()}
    return [*_rows("processor time", "ms", times), *_rows("memory", "MB", once)]


def _rows(quantity: str, unit: str, needs: Mapping[int, Mapping[str, Sequence[float]]]) -> list[Row]:
    return [_row(quantity, part, {tasks: by[part] for tasks, by in needs.items()}, unit) for part in needs[_LARGE]]


def _row(quantity: str, part: str, rounds: Mapping[int, Sequence[float]], unit: str) -> Row:
    """The least values are shown; the growth of each round is in the range, and its median is judged."""
    growths = [large / small for large, small in zip(rounds[_LARGE], rounds[_SMALL], strict=True)]
    large, small = (f"{min(rounds[tasks]):.3g} {unit}" for tasks in (_LARGE, _SMALL))
    what = f"{quantity}: {part} of {_LARGE} tasks, against {_SMALL} (linear: {_LARGE // _SMALL})"
    return Row(what, large, small, growths, median(growths), _LINEAR)


def parts(tasks: int) -> dict[str, Callable[[], object]]:
    """What is measured with so many tasks."""
    count = tasks // _TASKS_PER_MACHINE
    machines = [Machine(f"m{index}", "Worker", "docker", "", 16.0, 64 << 30) for index in range(count)]
    args: dict[str, Any] = {"ps": _PS, "workers": tasks - _PS, "jobs": {"worker": {"cpus": 1.0}}}
    cluster_spec = spec(**args, docker={"host": "unix:///var/run/docker.sock"})
    existing = inventory(cluster_spec, *machines)
    plan = make_plan(cluster_spec, existing, "")
    cluster, placement = cluster_ref("docker"), ControllerPlacement("id==m0", OVERLAY_CONTROLLER, {})
    world = _trained(World(workers=tasks - _PS, ps=_PS))
    lines = {
        name: [StoredLine(float(at), 1, f"step {at}: loss 0.{at}") for at in range(_LINES)] for name in world.job.tasks
    }
    view = RecordView(world.now, world.job, lines, events=world.events)
    engine = {name: EngineTask(True, "container", "running") for name in world.job.tasks}
    observed, expected = ObservedState(world.now, view, None, engine), expected_state(plan, cluster_spec)
    shown = report(expected, observed)
    content = Content("bench", "docker", "bench", "bench", shown, world.events, shown.timed)

    def preview() -> object:
        """What a preview computes and prints after it has inspected the Swarm."""
        planned = make_plan(cluster_spec, existing, "")
        rendered = render_containers(containers(cluster, cluster_spec, planned, placement), [])
        return rendered, planned.summary, planned.success_rule, planned.placement

    return {
        "plan": lambda: make_plan(cluster_spec, existing, ""),
        "preview": preview,
        "report": lambda: report(expected, observed),
        "page": lambda: page(content),
    }


def _trained(world: World) -> World:
    """All tasks run. The controller decides once for all reports of a round, as a real one does at its ticks."""
    world.launchers = {hostname: Launcher(hostname, now=world.now) for hostname in world.job.tasks}
    while not all(launcher.running for launcher in world.launchers.values()):
        for launcher in world.launchers.values():
            world.note(reconcile.apply_report(world.job, launcher.report(), world.now))
        world.advance()
        for launcher in world.launchers.values():
            launcher.obey(reconcile.make_order(world.job, launcher.report(), world.now), world.now)
    return world


def memory_of(call: Callable[[], object]) -> int:
    """The most memory that a call needs, in bytes, if no garbage is collected meanwhile: when that happens is chance."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    call()
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    gc.enable()
    return memory


def _seconds(call: Callable[[], object]) -> float:
    """The processor time of a call."""
    begun = time.process_time()
    call()
    return time.process_time() - begun
