"""Local clusters under random faults: their processes, their disk, their clocks, their record."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from tests.chaos.clocks import AWAY_SECONDS, ShiftedClocks, away_seconds, is_shifted
from tests.chaos.cluster import Apply, Cluster, Running, Story
from tests.chaos.common_faults import COMMON
from tests.chaos.disk import Disk
from tests.chaos.full_disk_end import DESTROY, STOP, end_run
from tests.chaos.invariants import parts
from tests.chaos.oracle import Touch
from tests.chaos.process_faults import CONTROLLER, PROCESSES, SUPERVISORD, kill, later, suspend_for
from tests.chaos.schedule import Kind, Step
from tests.integration.conftest import Project
from tests.removal import remove_local_cluster
from tfdeploy.agent.record.output import Log
from tfdeploy.agent.record.output_lines import STDOUT, printed
from tfdeploy.agent.record.record import Record
from tfdeploy.backends.local.paths import Places
from tfdeploy.backends.local.supervisor import Supervisor, marked
from tfdeploy.errors import Unreachable

HOUR = 3600


@dataclass(frozen=True)
class Shared:
    """What the clusters of one call of the command share."""

    state: Path
    """The user's state folder, on a disk of its own."""
    disk: Disk | None
    """None where only root could make one."""


class LocalCluster(Cluster):
    """One local cluster."""

    def __init__(self, folder: Path, shared: Shared, stack: str = "test") -> None:
        project = Project(folder)
        project.stack = stack
        project.env["XDG_STATE_HOME"] = str(shared.state)
        super().__init__(project)
        self.shared = shared
        self._homes: list[Path] = []
        self._earlier = set(self._retained())

    # The folders.

    def homes(self) -> list[Path]:
        """The folders of this stack's clusters, also of those that were destroyed; the latest one last."""
        entries = []
        for path in (self.shared.state / "tfdeploy/registry").glob("[!.]*.json"):
            with suppress(OSError, ValueError):
                entries.append(json.loads(path.read_text()))
        for entry in sorted(entries, key=lambda entry: float(entry["begun"])):
            home = Path(entry["cluster"]["home"])
            if entry["folder"] == str(self.project.program) and home not in self._homes:
                self._homes.append(home)
        return self._homes

    def _retained(self) -> list[Path]:
        return sorted((self.shared.state / "tfdeploy/retained").glob("*/*"), key=lambda path: path.name)

    @property
    def places(self) -> Places | None:
        """The present cluster's folders; None where there are none."""
        own = [path for path in self.homes() if path.exists()]
        return Places(str(own[-1])) if own else None

    def records(self) -> list[Path]:
        names = {home.name for home in self.homes()}
        own = [path for path in self._retained() if path not in self._earlier and path.parent.name in names]
        present = [self.places.record] if self.places else []
        return [path / "record" for path in own] + present

    def left(self) -> list[str]:
        places = [Places(str(home)) for home in self.homes()]
        folders = [path for one in places for path in (one.home, one.lock) if path.exists()]
        processes = [f"process {process.pid} of {one.home}" for one in places for process in marked(one.home)]
        return [*map(str, folders), *processes]

    def record_folder(self) -> Path | None:
        """The present record."""
        return self.places.record if self.places else None

    def write(self, clock_steps: bool) -> None:
        super().write(clock_steps)
        if clock_steps:
            self.clocks = ShiftedClocks(self.project.folder)
            paths = [str(self.clocks.site()), self.project.env.get("PYTHONPATH", "")]
            self.project.env["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

    def command(self, name: str, must: bool = False) -> str:
        if name == "destroy" and not self._is_whole():
            self.note("cut")
        return super().command(name, must)

    def close(self) -> None:
        for home in self.homes():
            remove_local_cluster(home)
        super().close()

    # The processes.

    def _programs(self) -> Mapping[str, Mapping[str, object]]:
        try:
            return Supervisor(self.places).programs() if self.places else {}
        except Unreachable:
            return {}

    def _is_whole(self) -> bool:
        """Whether all can be sent that is on disk: nothing is down."""
        programs = self._programs()
        return bool(programs) and all(int(str(one["pid"])) for one in programs.values())

    def process(self, role: str) -> psutil.Process | None:
        """The process of the controller, of a launcher, or of supervisord; None where there is none."""
        with suppress(psutil.Error, OSError, ValueError, KeyError):
            if role == SUPERVISORD:
                return psutil.Process(int(self.places.supervisor_pid.read_text())) if self.places else None
            pid = int(str(self._programs()[role]["pid"]))
            return psutil.Process(pid) if pid else None
        return None

    def note_stored(self, task: str) -> None:
        """Note what a task's launcher has on disk and has not sent: it must not be lost with the launcher."""
        if not self.places:
            return
        for spool in (self.places.task(task) / "spool").glob("*"):
            found = parts(_joined(Log(spool), Record(self.places.record).log(spool.name, task)))
            if found:
                start = list(found)[-1]
                self.story.stored.append((task, start, len(found[start])))


def _joined(disk: Log, record: Log) -> bytes:
    """What a task has printed: the closed pieces are in the record, and the others on the launcher's disk."""
    pieces = dict.fromkeys(record.pieces(), record) | dict.fromkeys(disk.pieces(), disk)
    whole = (log.path(first).read_bytes() for first, log in sorted(pieces.items()))
    return b"".join(printed(piece, STDOUT) for piece in whole)


def fill_disk(cluster: LocalCluster, step: Step, running: Running | None) -> str:
    """The disk with the state folder is full but for a few bytes, and has space again later."""
    disk = cluster.shared.disk
    if disk is None:
        return ""
    spare = int(step.amount * 8192)
    disk.fill(spare)
    later(cluster.story, step.seconds, disk.free)
    return f"full but for {spare} bytes for {step.seconds} s"


def end_on_full_disk(cluster: LocalCluster, step: Step, running: Running | None) -> str:
    """The run is stopped, or the cluster destroyed, while the disk is full."""
    disk = cluster.shared.disk
    if disk is None:
        return ""
    name = DESTROY if step.amount < 0.5 else STOP
    disk.fill(0)
    try:
        end_run(cluster, name)
    finally:
        disk.free()
    cluster.command("up")
    return f"`{name}` while the disk was full"


def step_clock(cluster: LocalCluster, step: Step, running: Running | None) -> str:
    """The wall clock of controller and launchers jumps by an hour, forward or back."""
    if not cluster.clocks or not is_shifted(cluster.process(CONTROLLER)):
        return ""
    seconds = HOUR if step.amount < 0.5 else -HOUR
    before = cluster.clocks.step_wall(seconds)
    return f"{before:+} s -> {seconds:+} s"


def take_controller_away(cluster: LocalCluster, step: Step, running: Running | None) -> str:
    """The controller does not run for half an hour by the clocks of the launchers, or is suspended for so long."""
    process = cluster.process(CONTROLLER)
    if not process or not cluster.places or not cluster.clocks or not is_shifted(process):
        return ""
    seconds = away_seconds(step)
    if step.amount < 0.5:
        suspend_for(cluster.story, seconds, [process])
    else:
        end_program(cluster.story, Supervisor(cluster.places), CONTROLLER, seconds)
        psutil.wait_procs([process], seconds)  # until then it responds
    cluster.clocks.pass_time(AWAY_SECONDS)
    return f"{'suspended' if step.amount < 0.5 else 'ended'} for {AWAY_SECONDS} s, of which {seconds:.1f} s are real"


def end_program(story: Story, supervisor: Supervisor, name: str, seconds: float) -> None:
    """End a program of supervisord's, and start it again after so many seconds."""

    def wake() -> None:
        with suppress(Unreachable, KeyError):
            supervisor.wake(name)

    supervisor._call("stopProcess", name, False)
    later(story, seconds, wake)


def suspend_all(cluster: LocalCluster, step: Step, running: Running | None) -> str:
    """The computer is suspended for half an hour by all of its clocks that do not stop then. Commands of Pulumi's stay awake."""
    if not cluster.places or not cluster.clocks or not is_shifted(cluster.process(CONTROLLER)):
        return ""
    now = time.monotonic()
    cluster.story.touches.append(Touch(now, "*", now + step.seconds + cluster.SETTLE_SECONDS, may_end=False))
    count = suspend_for(cluster.story, step.seconds, marked(cluster.places.home))
    cluster.clocks.sleep(AWAY_SECONDS)
    return f"{count} processes are suspended for {AWAY_SECONDS} s, of which {step.seconds:.1f} s are real"


def remove_program(cluster: LocalCluster, step: Step, running: Running | None) -> str:
    """A task's launcher, or the controller, is removed from supervisord by hand: nothing but an update starts it again."""
    role = step.task if step.amount < 0.7 else CONTROLLER
    if not cluster.places or not cluster.process(role):
        return ""
    cluster.note("cut", "*" if role == CONTROLLER else role)
    Supervisor(cluster.places).remove(role, step.seconds)
    return f"removed {role}"


FAULTS: dict[str, tuple[Kind, Apply]] = {
    **COMMON,
    **PROCESSES,
    "kill_supervisord": (Kind(weight=2), partial(kill, SUPERVISORD)),
    "remove_program": (Kind(weight=2, tasks=True), remove_program),
    "controller_away": (Kind(weight=4, touches=False), take_controller_away),
    "suspend_all": (Kind(weight=2, touches=False), suspend_all),
    "disk_full": (Kind(weight=2), fill_disk),
    "disk_full_at_end": (Kind(during=False), end_on_full_disk),
    "clock_step": (Kind(touches=False), step_clock),
}
