"""What the running tasks of a cluster do now: the dump of each program, with the progress that it has printed."""

from dataclasses import dataclass

from ..agent.run_state import RUNNING
from ..backends.load import access
from ..registry import Entry
from ..report.dump_findings import TaskSight, findings
from ..report.peer_traffic import peer_names
from ..report.program_problems import Finding
from ..report.progress import Progress
from .commands.status import WatchedCluster
from .snapshot import Snapshot


@dataclass(frozen=True)
class DumpedCluster:
    """A cluster at one moment, with what its running tasks do."""

    snapshot: Snapshot
    sights: list[TaskSight]

    @property
    def findings(self) -> list[Finding]:
        """What is wrong; empty for nothing."""
        return findings(self.sights, self.snapshot.observed.view.at)


def dump_cluster(entry: Entry) -> DumpedCluster:
    """Observe a cluster, and have the launchers of its running tasks observe their programs.

    Raises:
        BackendError: the controller does not respond, or is older than this.
    """
    watched = WatchedCluster(entry)
    snapshot = watched.take_snapshot()
    watched.store()
    run, progress = snapshot.run_state, watched.progress()
    running = [task for task in run.tasks.values() if task.state == RUNNING] if run else []
    hostnames = [task.hostname for task in running]
    dumps = access(entry.cluster["backend"]).dumps(entry.cluster, hostnames) if hostnames else {}
    names = peer_names(dumps.values())
    sights = [
        TaskSight(
            task.hostname,
            task.job,
            dumps.get(task.hostname),
            progress.get(task.hostname, Progress()),
            {address: peer for (hostname, address), peer in names.items() if hostname == task.hostname},
        )
        for task in running
    ]
    return DumpedCluster(snapshot, sights)
