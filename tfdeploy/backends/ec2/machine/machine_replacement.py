"""What an update does with a run when it replaces machines: by others of another type, disks, image or network."""

from ....agent.model.run_state import FAILED, STOPPED, RunState, continues
from ....plan.inventory import Inventory
from ....plan.plan import Plan
from ....plan.run_id import is_same_content
from ....plan.scheduler import Machine
from ....spec.cluster import ClusterSpec
from ...base import Replacement
from ...move_checks import failed_run, refuse_without_checkpoint, without_checkpoint
from . import machines
from .model import ec2_machine
from .user_data import SHARED, disk_folder

_ARROW = " -> "


def replacement_of(spec: ClusterSpec, plan: Plan, inventory: Inventory) -> Replacement | None:
    """What is replaced, where the run must be brought to this computer before; None where it loses nothing.

    Raises:
        SpecError: the run could not continue on the new machines.
    """
    run = inventory.run
    replaced = _replaced(spec, plan, run) if run else []
    if run is None or not (replaced or continues(run)):
        return None
    keeps = _keeps_train_dir(spec, run, replaced)
    if replaced:
        _refuse(spec, plan, run, keeps)
    return Replacement(
        tuple(ec2_machine(machine).instance_id for machine in replaced),
        keeps,
        is_same_content(run.spec, plan.run) or plan.run.resume_from == run.spec.id,
    )


def _replaced(spec: ClusterSpec, plan: Plan, run: RunState) -> list[Machine]:
    """The machines that are replaced, if the run loses its record or checkpoints with them. A manager that is gone, or did not boot,
    has no controller that could send them."""
    manager = ec2_machine(machines.manager(plan.machines))
    if not manager.instance_id or manager.failed or manager.state not in ("pending", "running"):
        return []
    replaced = [machine for machine in plan.needed_machines if _is_replaced(machine)]
    return replaced if manager.changes or not _keeps_train_dir(spec, run, replaced) else []


def _is_replaced(machine: Machine) -> bool:
    planned = ec2_machine(machine)
    return bool(planned.instance_id and planned.changes and not planned.failed)


def _keeps_train_dir(spec: ClusterSpec, run: RunState, replaced: list[Machine]) -> bool:
    """Whether new machines see the run's checkpoints: at a URL, or on the same shared file system or volumes of the user."""
    planned = [ec2_machine(machine) for machine in replaced]
    changed = {change.partition(_ARROW)[2] for machine in planned for change in machine.changes}
    if changed & {spec.ec2.efs or "no efs", *(" ".join(machine.disks) or "no ebs_volumes" for machine in planned)}:
        return "://" in run.spec.train_dir
    volumes = [pair for job in spec.training_jobs for pair in enumerate(job.ec2.ebs_volumes)]
    lasting = [disk_folder(number) for number, volume in volumes if volume.volume_id] + (
        [SHARED] if spec.ec2.efs else []
    )
    return "://" in run.spec.train_dir or any(run.spec.train_dir.startswith(f"{folder}/") for folder in lasting)


def _refuse(spec: ClusterSpec, plan: Plan, run: RunState, keeps: bool) -> None:
    """Refuse a run that has failed, and checkpoints that would be lost."""
    if not is_same_content(run.spec, plan.run):
        return
    state = run.result.state if run.result else STOPPED
    if state == FAILED:
        raise failed_run(f"{spec.name}: ec2", run, "other machines")
    if state == STOPPED and not keeps:
        remedy = " Or set ec2.efs, or a URL as train_dir, before the next run."
        refuse_without_checkpoint(spec.name, run, "machines that are replaced", remedy)


def lines(plan: Plan, inventory: Inventory, replacement: Replacement | None) -> list[str]:
    """What happens with the run, in sentences."""
    if replacement is None or inventory.run is None:
        return []
    if not replacement.machines:
        return ["the run, which an earlier update has stopped, continues from its newest checkpoint"]
    copied = "its record is" if replacement.keeps_train_dir else "its record and newest checkpoint are"
    first = f"{copied} copied to this computer before machines are replaced"
    run = inventory.run
    if not is_same_content(run.spec, plan.run):
        return [f"run {run.spec.id} is stopped, {first}; then another run starts"]
    if run.result is not None and run.result.state != STOPPED:
        return [f"the run is finished: {first}, and nothing starts"]
    back = "to return, undo the change and run `pulumi up`"
    without = "" if replacement.keeps_train_dir else f"; {without_checkpoint('no machine is replaced')}"
    return [f"the run is stopped, {first}; it continues on the new ones from its newest checkpoint{without}; {back}"]
