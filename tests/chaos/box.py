"""Clusters on EC2 in a box under random faults: their machines, AWS on a bad day."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import psutil

from tests.box.bad_day import BadDay
from tests.box.cloud import Box, Instance
from tests.chaos.clocks import PYTHON, ShiftedClocks, silence_seconds
from tests.chaos.cluster import Apply, Cluster, Running, variables
from tests.chaos.common_faults import COMMON
from tests.chaos.process_faults import later
from tests.chaos.record_disk import RecordDisk, fill_disk, find, release
from tests.chaos.schedule import Kind, Step
from tests.chaos.swarm import cut_chains
from tests.ec2.project import SHARED, Ec2Project
from tests.engine import daemon, images
from tests.engine.cli import DockerFailed
from tests.waiting import until

IN_TASKS = "python train.py"
IN_CONTROLLER = "agent.pyz controller"
ENGINE = "^dockerd "


@dataclass(frozen=True)
class Shared:
    """What the clusters of one call of the command share."""

    box: Box
    image: str
    project: str


@contextmanager
def shared() -> Iterator[Shared]:
    """A box of its own."""
    with daemon.engine() as address, Box(address) as box, variables(box.environment):
        yield Shared(box, box.push(images.python_image(address)), f"chaos-{token_hex(3)}")


class BoxCluster(Cluster):
    """One cluster in the box, of a ps and one worker on a machine each."""

    COPIES = "ec2"
    HEAL = "up"
    COMMAND_SECONDS = 400.0
    END_SECONDS = 400.0
    POLL_SECONDS = 1.0
    PACE = 0.4
    SETTLE_SECONDS = 60.0

    def __init__(self, folder: Path, common: Shared, stack: str) -> None:
        project = Ec2Project(folder, common.box, common.image)
        project.name, project.stack = common.project, stack
        super().__init__(project)
        self.box = common.box
        self.tasks = 'ps=1, workers=1, jobs={"worker": {"ec2": {"spot": True}}}'
        self.record_disk: RecordDisk | None = None
        self._efs = project.efs
        self._image = common.image

    def write(self, clock_steps: bool) -> None:
        if clock_steps:
            self.clocks = ShiftedClocks(self.folder)
            source = f"{SHARED}/counter"
            volumes = [f"{source}:{self.folder}", f"{source}/{self.clocks.python().name}:{PYTHON}:ro"]
            self.more = f'container={{"volumes": {volumes}}}'
        super().write(clock_steps)

    def start(self, name: str) -> Running:
        if name == "destroy":
            release(self)
        return super().start(name)

    def find_record_disk(self) -> RecordDisk | None:
        """What can be under the record, on the machine that manages the Swarm; None where there is none."""
        disks = (find(partial(self._docker, machine.id), self._image) for machine in self.machines())
        return next(filter(None, disks), None)

    def _docker(self, machine: str, *arguments: str) -> str:
        """What a docker command prints on a machine."""
        try:
            return self.box.run(machine, "docker", *arguments)
        except KeyError:
            raise DockerFailed(f"there is no machine {machine}") from None

    def left(self) -> list[str]:
        ec2, mine, report = self.box.client("ec2"), self._mine(), " ".join(self.story.outputs.values())
        found = {
            "machine": [one.id for one in self.machines()],
            "security group": [one["GroupId"] for one in ec2.describe_security_groups(Filters=mine)["SecurityGroups"]],
            "key pair": [one["KeyPairId"] for one in ec2.describe_key_pairs(Filters=mine)["KeyPairs"]],
            "volume": [one["VolumeId"] for one in ec2.describe_volumes(Filters=mine)["Volumes"]],
        }
        return [f"{kind} {name}" for kind, names in found.items() for name in names if name not in report]

    def _mine(self) -> list[dict[str, Any]]:
        """The filter of EC2's API for what carries the ids of this stack's clusters."""
        return [{"Name": "tag:tfdeploy:cluster-id", "Values": [ref["id"] for ref in self.project.refs()] or ["none"]}]

    def storage_exists(self, train_dir: str) -> bool:
        # The file system is the user's, and outlives the cluster; the folder is that of its runs.
        return any((self.box.efs(self._efs)).glob(f"**/{Path(train_dir).name}"))

    def state(self) -> str:
        state = str(self.shown(must=False).get("state", ""))
        return state if state in ("succeeded", "failed", "stopped") else ""

    def machines(self) -> list[Instance]:
        """The instances of this cluster that run."""
        found = self.box.client("ec2").describe_instances(Filters=self._mine())["Reservations"]
        ids = {item["InstanceId"] for group in found for item in group["Instances"]}
        return [one for one in self.box.instances() if one.id in ids and one.state == "running"]

    def machine(self, step: Step) -> Instance | None:
        """The machine that the step means."""
        machines = sorted(self.machines(), key=lambda one: one.name)
        return machines[int(step.amount * len(machines))] if machines else None


def kill_machine(cluster: BoxCluster, step: Step, running: Running | None) -> str:
    """A machine dies, and its disk with it."""
    if (machine := cluster.machine(step)) is None:
        return ""
    cluster.note("cut")
    cluster.box.kill(machine.id)
    return f"{machine.name} is terminated"


def spot_notice(cluster: BoxCluster, step: Step, running: Running | None) -> str:
    """AWS announces that it takes a spot machine back, and does."""
    machine = next((one for one in cluster.machines() if "worker" in one.name), None)
    if machine is None:
        return ""
    cluster.note("cut")
    cluster.box.notice_spot(machine.id, 10 * step.seconds)

    def wait() -> None:
        until(lambda: machine.id not in {one.id for one in cluster.machines()}, f"{machine.name} is taken", seconds=60)

    cluster.story.heals.append(wait)
    return f"{machine.name} has a notice of {10 * step.seconds:.0f} s"


def hang_machine(cluster: BoxCluster, step: Step, running: Running | None) -> str:
    """A machine does nothing for a while, and EC2 says that it runs."""
    if (machine := cluster.machine(step)) is None:
        return ""
    cluster.box.hang(machine.id)

    def resume() -> None:
        with suppress(DockerFailed, KeyError):
            cluster.box.resume(machine.id)

    later(cluster.story, 4 * step.seconds, resume)
    return f"{machine.name} hangs for {4 * step.seconds:.0f} s"


def throttle(cluster: BoxCluster, step: Step, running: Running | None) -> str:
    """Every third call is throttled, what was just created is not found, and once there is no capacity."""
    day = cluster.box.bad_day(BadDay(every=3))
    day.__enter__()

    def end() -> None:
        day.__exit__(None, None, None)

    later(cluster.story, 5 * step.seconds, end)
    return f"a bad day for {5 * step.seconds:.0f} s"


def kill_in_machine(pattern: str, cluster: BoxCluster, step: Step, running: Running | None) -> str:
    """SIGKILL for the programs in one machine whose command line has this."""
    if (machine := cluster.machine(step)) is None:
        return ""
    with suppress(DockerFailed):
        cluster.box.run(machine.id, "pkill", "--signal=KILL", "--full", pattern)
        return f"killed on {machine.name}"
    return ""


def suspend_in_machine(pattern: str, cluster: BoxCluster, step: Step, running: Running | None) -> str:
    """SIGSTOP for the programs in one machine whose command line has this, and SIGCONT later: half an hour by the agents' clocks."""
    if (machine := cluster.machine(step)) is None:
        return ""

    def send(signal: str) -> None:
        cluster.box.run(machine.id, "pkill", f"--signal={signal}", "--full", pattern)

    def resume() -> None:
        with suppress(DockerFailed, KeyError):
            send("CONT")

    with suppress(DockerFailed):
        send("STOP")
        later(cluster.story, silence_seconds(step), resume)
        cluster.pass_time()
        return f"{machine.name}: suspended for {silence_seconds(step):.0f} s"
    return ""


def cut_machine(cluster: BoxCluster, step: Step, running: Running | None) -> str:
    """A machine hears nothing, or is not heard, or both, for half an hour by the agents' clocks; its disks and file systems work."""
    if (machine := cluster.machine(step)) is None:
        return ""
    done = cut_chains(cluster, cluster.box.process(machine.id), step, silence_seconds(step))
    cluster.pass_time()
    return f"{machine.name}: {done}"


def kill_engine(cluster: BoxCluster, step: Step, running: Running | None) -> str:
    """The engine of a machine dies without its containers, and starts again."""
    # The disk in memory would end with the engine.
    if cluster.record_disk:
        return ""
    cluster.note("cut")
    return kill_in_machine(ENGINE, cluster, step, running)


def slow_pull(cluster: BoxCluster, step: Step, running: Running | None) -> str:
    """The registry does not answer, so that a machine that boots meanwhile waits for its image."""
    registries = [one for one in psutil.Process().children() if one.name() == "docker-registry"]
    for registry in registries:
        registry.suspend()
        later(cluster.story, 10 * step.seconds, registry.resume)
    return f"the registry hangs for {10 * step.seconds:.0f} s" if registries else ""


FAULTS: dict[str, tuple[Kind, Apply]] = {
    **COMMON,
    "kill_program": (Kind(), partial(kill_in_machine, IN_TASKS)),
    "kill_controller": (Kind(touches=False), partial(kill_in_machine, IN_CONTROLLER)),
    "controller_away": (Kind(weight=2, touches=False), partial(suspend_in_machine, IN_CONTROLLER)),
    "suspend_engine": (Kind(weight=2, touches=False), partial(suspend_in_machine, ENGINE)),
    "cut_machine": (Kind(weight=3, touches=False), cut_machine),
    "kill_machine": (Kind(weight=3), kill_machine),
    "spot_notice": (Kind(weight=2), spot_notice),
    "hang_machine": (Kind(weight=2), hang_machine),
    "throttle": (Kind(weight=2, touches=False), throttle),
    "kill_engine": (Kind(weight=2), kill_engine),
    "slow_pull": (Kind(weight=2, touches=False), slow_pull),
    "disk_full": (Kind(during=False, touches=False), fill_disk),
}
