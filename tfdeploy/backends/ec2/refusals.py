"""What a cluster on EC2 is refused for, before it costs anything; and what is warned of."""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence

from ...containers import HOST, OVERLAY
from ...ec2 import account, failures, layout
from ...ec2.boot import SHARED, disk
from ...ec2.facts import Facts
from ...ec2.failures import Failure
from ...errors import SpecError
from ...instances import ANYWHERE, PRIVATE, PUBLIC, SSM
from ...plan import Plan
from ...quantities import counted
from ...spec import ClusterSpec
from ..docker.refusals import refuse_builds
from ..refusing import refuse_requirements, refuse_same_ports, refuse_script
from . import costs, fleet, keys

_QUOTAS = {
    "g": ("L-DB2E81BA", "L-3819A6DF"),
    "vt": ("L-DB2E81BA", "L-3819A6DF"),
    "p": ("L-417A185B", "L-7212CCBC"),
}
"""Family of types to the quotas of their vCPUs, on demand and as spot instances.
https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html"""

_OWN_ADDRESS = (
    f'Give your own address, such as ["203.0.113.7/32"] (https://checkip.amazonaws.com says it), or ["{ANYWHERE}"].'
)
_INNER_ADDRESS = 'Give those that VPN, peering or jump host come from, such as ["10.0.0.0/16"].'

_NEEDED = {
    "aws": "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    "session-manager-plugin": "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html",
}
"""Commands that ssh through SSM runs here, and what says how they are installed."""


def refuse_early(spec: ClusterSpec) -> None:
    """What needs no word of AWS's.

    Raises:
        SpecError: with the argument, what is wrong with it, and what would do.
    """
    keys.public(spec)
    if spec.fleet.access == SSM:
        _refuse_no_session(spec)
    elif not spec.fleet.ssh_from:
        remedy = _OWN_ADDRESS if spec.fleet.access == PUBLIC else _INNER_ADDRESS
        raise SpecError(f"{spec.name}: ssh_from", "is not given: nobody could reach the machines", remedy)


def _refuse_no_session(spec: ClusterSpec) -> None:
    """What keeps ssh from going through SSM, or tasks from being shut out of the role that it needs."""
    where = f"{spec.name}: access"
    if spec.fleet.ssh_from:
        wrong = f'is given together with access="{SSM}", by which ssh is let in from nowhere'
        raise SpecError(f"{spec.name}: ssh_from", wrong, f'Leave it out, or choose "{PUBLIC}" or "{PRIVATE}".')
    if spec.engine.network == HOST:
        wrong = f'"{SSM}" gives the machines a role, and tasks on network="{HOST}" would reach it'
        raise SpecError(where, wrong, f'Leave `network` at "{OVERLAY}", or choose "{PUBLIC}" or "{PRIVATE}".')
    for command, page in _NEEDED.items():
        if shutil.which(command) is None:
            wrong = f'"{SSM}" needs the command `{command}`, which is not on PATH'
            raise SpecError(where, wrong, f"Install it ({page}), or choose another access.")


def refuse_facts(spec: ClusterSpec, known: Facts) -> None:
    """What AWS's word speaks against.

    Raises:
        SpecError: with the argument, what is wrong with it, and what would do.
    """
    for job in spec.crew:
        kind = known.types[job.instance.instance_type]
        if job.instance.spot and not kind.spot:
            wrong = f"{kind.name} cannot be had as a spot instance"
            raise SpecError(f"{spec.name}: jobs: {job.name}: spot", wrong, "Choose another type, or spot=False.")
    _refuse_quota(spec, known)


def _refuse_quota(spec: ClusterSpec, known: Facts) -> None:
    """GPU machines beyond what the account may have, where AWS tells."""
    needed: Counter[str] = Counter()
    for item in layout.wanted(spec, known.types, known.instances):
        codes = _QUOTAS.get(_family(item.kind.name)) if item.kind.gpus else None
        if codes:
            needed[codes[item.spot]] += item.kind.cpus
    for code, cpus in needed.items():
        quota = account.quota(known.region, code)
        if quota is not None and cpus > quota:
            wrong = f"the machines with GPUs have {cpus} vCPUs, and the account may have {quota:g} ({code})"
            raise SpecError(
                f"{spec.name}: instance_type", wrong, "Ask for more in AWS's Service Quotas, or for fewer machines."
            )


def _family(name: str) -> str:
    """The letters that a type's name begins with: `g` of g6e.xlarge."""
    return name[: next((place for place, sign in enumerate(name) if sign.isdigit()), len(name))]


def refuse_folder(spec: ClusterSpec, key: str, given: str) -> None:
    """A folder must be one of the machines, by its whole path, or a URL.

    Raises:
        SpecError: it is not.
    """
    if given and "://" not in given and not given.startswith("/"):
        wrong = f"is {given!r}, a folder of this computer"
        remedy = f'Give a path on the machines (with efs, one below "{SHARED}/"), or a URL.'
        raise SpecError(f"{spec.name}: {key}", wrong, remedy)


def refuse_failing(spec: ClusterSpec, plan: Plan, known: Mapping[str, Failure]) -> None:
    """Machines are not made for ever that do not boot.

    Raises:
        SpecError: one would be made once more.
    """
    made = {
        machine.name: fleet.kind_of(fleet.plot_of(machine))
        for machine in plan.machines
        if machine.name not in plan.unneeded and not fleet.stays(machine)
    }
    failures.refuse(f"{spec.name}: machines", made, known)


def _refuse_mortal(spec: ClusterSpec, machines: int) -> None:
    """Checkpoints on the disk of a machine are neither its neighbours', nor there when it has ended itself."""
    where, remedy = f"{spec.name}: train_dir", 'Give efs="new" for a file system of the cluster\'s own, or a URL'
    if machines > 1:
        raise SpecError(
            where, f"is not shared by the {counted(machines, 'machine')} that the tasks stand on", f"{remedy}."
        )
    disks = [pair for job in spec.crew for pair in enumerate(job.instance.ebs_volumes)]
    own = [disk(number) for number, volume in disks if volume.volume_id]
    stays = any(f"{spec.train_dir}/".startswith(f"{folder}/") for folder in own)
    if not stays and (spec.fleet.idle or spec.fleet.lifetime):
        wrong = "is on the disk of a machine that ends itself, and would go with it"
        others = f'or a folder on a volume of yours (below "{own[0] if own else disk(0)}"), or both idle="never" and lifetime="never"'
        raise SpecError(where, wrong, f"{remedy}, {others}.")


def refuse(spec: ClusterSpec, plan: Plan, code_files: Sequence[str]) -> list[str]:
    """Refuse what the plan shows not to work; the warnings.

    Raises:
        SpecError: with the argument, what is wrong with it, and what would do.
    """
    refuse_script(spec, code_files)
    refuse_requirements(spec)
    if spec.engine.network == HOST:
        refuse_same_ports(plan)
    refuse_builds(spec, len(plan.machines))
    costs.refuse(spec, plan)
    used = {task.machine for task in plan.tasks}
    given = spec.train_dir
    shared = "://" in given or (spec.fleet.efs and (not given or f"{given}/".startswith(f"{SHARED}/")))
    if not shared and not spec.serve:
        _refuse_mortal(spec, len(used))
    spot = {machine.name for machine in plan.machines if fleet.plot_of(machine)["spot"]}
    on_spot = any(task.job == "ps" and task.machine in spot for task in plan.tasks)
    lost = "ps on spot instances: when one is taken away, the variables on it are gone until it is back"
    return [lost] if on_spot else []
