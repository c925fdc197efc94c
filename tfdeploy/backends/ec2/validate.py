"""Checks of a cluster on EC2 before anything is created: errors and warnings."""

import re
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from ...errors import SpecError
from ...plan.plan import Plan
from ...plan.scheduler import Machine
from ...spec.cluster import ClusterSpec
from ...spec.docker import HOST, OVERLAY
from ...spec.ec2 import ANYWHERE, NEW, PRIVATE, PUBLIC, SSM
from ...units import counted
from ..docker.addresses import refuse_few_addresses
from ..docker.validate import refuse_builds
from ..validate import refuse_elastic_on_machines, refuse_requirements, refuse_same_ports, refuse_script
from .aws import api
from .machine import model, ssh
from .machine.model import MOST_BOOT_FAILURES, BootFailure, Ec2Inventory, ec2_machine
from .machine.user_data import SHARED, disk_folder

_QUOTAS = {
    "g": ("L-DB2E81BA", "L-3819A6DF"),
    "vt": ("L-DB2E81BA", "L-3819A6DF"),
    "p": ("L-417A185B", "L-7212CCBC"),
}
"""Family of GPU types to the quotas of their vCPUs, on demand and spot.
https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html"""

_OWN_ADDRESS = (
    f'Set it to your own address, such as ["203.0.113.7/32"] (see https://checkip.amazonaws.com), or to ["{ANYWHERE}"].'
)
_INNER_ADDRESS = 'Set it to the addresses of your VPN, peering or jump host, such as ["10.0.0.0/16"].'

_SSM_COMMANDS = {
    "aws": "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    "session-manager-plugin": "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html",
}
"""The commands that ssh through SSM needs on this computer, and how to install them."""


def refuse_spec(spec: ClusterSpec) -> None:
    """The checks that need no call of AWS.

    Raises:
        SpecError: a check failed.
    """
    ssh.public_key(spec)
    if spec.ec2.connectivity == SSM:
        _refuse_ssm(spec)
    elif not spec.ec2.ssh_cidrs:
        remedy = _OWN_ADDRESS if spec.ec2.connectivity == PUBLIC else _INNER_ADDRESS
        raise SpecError(
            f"{spec.name}: ec2.ssh_cidrs", "is not set, so this computer could not reach the machines", remedy
        )


def _refuse_ssm(spec: ClusterSpec) -> None:
    """SSM needs no open port, a role for the machines that tasks cannot use, and two commands on this computer."""
    where = f"{spec.name}: ec2.connectivity"
    if spec.ec2.ssh_cidrs:
        wrong = f'cannot be combined with connectivity="{SSM}", which opens no port for ssh'
        raise SpecError(f"{spec.name}: ec2.ssh_cidrs", wrong, f'Remove it, or choose "{PUBLIC}" or "{PRIVATE}".')
    if spec.container.network == HOST:
        wrong = f'"{SSM}" gives the machines a role, which tasks on network="{HOST}" could use'
        raise SpecError(where, wrong, f'Use network="{OVERLAY}", or choose "{PUBLIC}" or "{PRIVATE}".')
    for command, page in _SSM_COMMANDS.items():
        if shutil.which(command) is None:
            wrong = f'"{SSM}" needs the command `{command}`, which is not on PATH'
            raise SpecError(where, wrong, f"Install it ({page}), or choose another connectivity.")


def refuse_inventory(spec: ClusterSpec, inventory: Ec2Inventory, needed: Sequence[Machine]) -> None:
    """The checks of existing machines, types and quotas; `needed` are the machines of the cluster.

    Raises:
        SpecError: a check failed.
    """
    _refuse_adoption(spec, inventory)
    for job in spec.training_jobs:
        instance_type = inventory.types[job.ec2.instance_type]
        if job.ec2.spot and not instance_type.spot:
            wrong = f"{instance_type.name} is not available as a spot instance"
            raise SpecError(f"{spec.name}: jobs.{job.name}.ec2.spot", wrong, "Choose another type, or spot=False.")
    _refuse_above_quota(spec, needed)


def _refuse_adoption(spec: ClusterSpec, inventory: Ec2Inventory) -> None:
    """A state that does not have the machines would create others, and these would be terminated as unlisted ones."""
    machines_of_cluster = sorted(inventory.instances.values(), key=lambda instance: instance.machine)
    if not spec.adopt or not machines_of_cluster:
        return
    names = ", ".join(f"{instance.machine} ({instance.instance_id})" for instance in machines_of_cluster)
    wrong = f"the cluster {spec.adopt} has {names}, which the state of this stack does not have"
    remedy = (
        "To keep them, restore the state with `pulumi stack import`. When its machines have terminated, a cluster can be adopted with "
        f"its record. `tfdeploy ls --leftovers --delete --cluster {spec.adopt}` removes it."
    )
    raise SpecError(f"{spec.name}: adopt", wrong, remedy)


def refuse_file_systems(spec: ClusterSpec, names: Collection[str]) -> None:
    """A state that does not have the file systems of the cluster to adopt would create another one, and training would start without
    its checkpoints. `destroy` would treat one of them that the user names as the cluster's, by its tag.

    Raises:
        SpecError: the cluster to adopt has these.
    """
    refused = sorted(names) if spec.ec2.efs == NEW else [name for name in names if name == spec.ec2.efs]
    if not spec.adopt or not refused:
        return
    wrong = f"the cluster {spec.adopt} has the file system {', '.join(refused)}, which the state of this stack does not have"
    remedy = (
        "To keep its checkpoints, restore the state with `pulumi stack import`, or make the file system your own: remove the tag "
        f"with `aws efs untag-resource --resource-id {refused[0]} --tag-keys {model.CLUSTER_ID}`, give it a mount target that "
        f'accepts connections from the machines, and set ec2={{"efs": "{refused[0]}"}} and the `train_dir` of the checkpoints. '
        f"`tfdeploy ls --leftovers --delete --cluster {spec.adopt}` deletes it with the checkpoints."
    )
    raise SpecError(f"{spec.name}: adopt", wrong, remedy)


def _refuse_above_quota(spec: ClusterSpec, needed: Sequence[Machine]) -> None:
    """The vCPUs of machines with GPUs, where AWS reports the quota."""
    used: Counter[str] = Counter()
    for machine in needed:
        codes = _QUOTAS.get(re.split(r"\d", machine.kind)[0])  # `g` of g6e.xlarge
        if codes and machine.gpus:
            used[codes[ec2_machine(machine).request.spot]] += int(machine.cpus)
    for code, cpus in used.items():
        quota = api.quota(needed[0].region, code)
        if quota is not None and cpus > quota:
            wrong = f"the machines with GPUs have {cpus} vCPUs, but the quota of the account is {quota:g} ({code})"
            remedy = "Request an increase in AWS Service Quotas, or use fewer machines."
            raise SpecError(f"{spec.name}: ec2.instance_type", wrong, remedy)


def refuse_folder(spec: ClusterSpec, key: str, folder: str) -> None:
    """A folder must be an absolute path on the machines, or a URL.

    Raises:
        SpecError: it is a relative path.
    """
    if folder and "://" not in folder and not folder.startswith("/"):
        wrong = f"is {folder!r}, a folder of this computer"
        remedy = f'Use a path on the machines (with efs, one below "{SHARED}/"), or a URL.'
        raise SpecError(f"{spec.name}: {key}", wrong, remedy)


def refuse_failed_boots(spec: ClusterSpec, plan: Plan, failures: Mapping[str, BootFailure]) -> None:
    """Machines that failed to boot too often are not created once more.

    Raises:
        SpecError: one would be; the message has the reason and the end of its console.
    """
    for machine in plan.needed_machines:
        planned, failure = ec2_machine(machine), failures.get(machine.name)
        is_other = failure is None or failure.kind != planned.boot_kind
        if planned.can_stay or failure is None or is_other or failure.times < MOST_BOOT_FAILURES:
            continue
        wrong = f"{machine.name} failed to boot {failure.times} times in a row ({failure.kind}): {failure.reason}"
        remedy = "Choose another ami, instance_type or subnet_id, or run `pulumi destroy` to start over."
        console = f"The end of its console:\n{failure.console}" if failure.console else "Its console was empty."
        raise SpecError(f"{spec.name}: ec2.instance_type", wrong, f"{remedy} {console}")


def _refuse_unshared_train_dir(spec: ClusterSpec, machine_count: int) -> None:
    """Checkpoints on a machine's own disk are not visible on other machines, and are lost when it terminates itself."""
    where, remedy = f"{spec.name}: train_dir", 'Use efs="new" for a file system of the cluster, or a URL'
    if machine_count > 1:
        wrong = f"is not shared by the {counted(machine_count, 'machine')} of the tasks"
        raise SpecError(where, wrong, f"{remedy}.")
    disks = [pair for job in spec.training_jobs for pair in enumerate(job.ec2.ebs_volumes)]
    own_folders = [disk_folder(number) for number, volume in disks if volume.volume_id]
    if any(f"{spec.train_dir}/".startswith(f"{folder}/") for folder in own_folders):
        return
    volume = f'a folder on one of your volumes (below "{own_folders[0] if own_folders else disk_folder(0)}")'
    never = 'container={"retain_volumes": False}, idle_timeout="never" and max_lifetime="never"'
    if spec.ec2.idle_timeout or spec.ec2.max_lifetime:
        wrong = "is on the disk of a machine that terminates itself, and would be lost with it"
        raise SpecError(where, wrong, f"{remedy}, or {volume}, or all of {never}.")
    if spec.container.retain_volumes:
        wrong = "is on the disk of a machine, which `pulumi destroy` deletes"
        raise SpecError(
            where, wrong, f'{remedy}, or {volume}, or container={{"retain_volumes": False}} to accept that.'
        )


def refuse_plan(spec: ClusterSpec, plan: Plan, code_files: Sequence[str]) -> list[str]:
    """The checks of the plan; its warnings.

    Raises:
        SpecError: a check failed.
    """
    refuse_script(spec, code_files)
    refuse_requirements(spec)
    if spec.container.network == HOST:
        refuse_same_ports(plan)
        refuse_elastic_on_machines(spec, plan)
    refuse_builds(spec, len(plan.machines))
    refuse_few_addresses(spec, plan)
    train_dir = spec.train_dir
    is_shared = "://" in train_dir or (spec.ec2.efs and (not train_dir or f"{train_dir}/".startswith(f"{SHARED}/")))
    if not is_shared and not spec.standalone_servers:
        _refuse_unshared_train_dir(spec, len({task.machine for task in plan.tasks}))
    spot = {machine.name for machine in plan.machines if ec2_machine(machine).request.spot}
    if any(task.job == "ps" and task.machine in spot for task in plan.tasks):
        return ["ps tasks run on spot instances: an interruption loses their variables until the machine is replaced"]
    return []
