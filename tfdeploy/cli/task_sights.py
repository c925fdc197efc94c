"""What the running tasks of a cluster do, or did: the dump of each program, with the progress that it has printed."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..agent.record import run_dumps
from ..agent.record.record import Record
from ..agent.run_state import RUNNING, RunState
from ..agent.task_dump import TaskDump
from ..backends.load import access
from ..registry import Entry
from ..report.dump_findings import findings
from ..report.peer_traffic import peer_names
from ..report.program_problems import Finding
from ..report.progress import Progress, read_progress
from ..report.task_sight import TaskSight
from .commands.status import WatchedCluster
from .snapshot import Snapshot, read_lines


@dataclass(frozen=True)
class DumpedTasks:
    """What tasks do at one moment."""

    at: float
    """In seconds since 1970."""
    sights: list[TaskSight]

    @property
    def findings(self) -> list[Finding]:
        """What is wrong; empty for nothing."""
        return findings(self.sights, self.at)


@dataclass(frozen=True)
class DumpedCluster(DumpedTasks):
    """What the running tasks of a cluster do now."""

    snapshot: Snapshot


def dump_cluster(entry: Entry) -> DumpedCluster:
    """Observe a cluster, and have the launchers of its running tasks observe their programs.

    Raises:
        BackendError: the controller does not respond, or is older than this.
    """
    watched = WatchedCluster(entry)
    snapshot = watched.take_snapshot()
    watched.store()
    run = snapshot.run_state
    running = {task.hostname: task.job for task in run.tasks.values() if task.state == RUNNING} if run else {}
    dumps = access(entry.cluster["backend"]).dumps(entry.cluster, list(running)) if running else {}
    sights = _sights({name: (job, dumps.get(name)) for name, job in running.items()}, watched.progress())
    return DumpedCluster(snapshot.observed.view.at, sights, snapshot)


def recorded_dump(record: Record, run: RunState) -> DumpedTasks:
    """What the tasks of a run did when it had made no step for long, from its last dump in the record; no task without one."""
    at, stored = run_dumps.last(record.log(run.spec.id, run_dumps.FOLDER))
    tasks, progress = {}, {}
    for hostname in filter(stored.__contains__, run.tasks):
        lines = read_lines(record, run.spec.id, [hostname])
        progress[hostname] = read_progress((line.at, line.text) for line in lines if line.at <= at)
        tasks[hostname] = run.tasks[hostname].job, _read(stored[hostname])
    return DumpedTasks(at, _sights(tasks, progress))


def _read(content: Mapping[str, Any]) -> TaskDump | None:
    """A stored dump; None for one of another version, or of a cluster that is not trusted."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        return TaskDump.from_dict(content)
    return None


def _sights(tasks: Mapping[str, tuple[str, TaskDump | None]], progress: Mapping[str, Progress]) -> list[TaskSight]:
    """The sights of these tasks, given by the job and the dump of each."""
    names = peer_names([dump for _, dump in tasks.values() if dump is not None])
    return [
        TaskSight(
            hostname,
            job,
            dump,
            progress.get(hostname, Progress()),
            {address: peer for (task, address), peer in names.items() if task == hostname},
        )
        for hostname, (job, dump) in tasks.items()
    ]
