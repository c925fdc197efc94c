"""The machines of a cluster: what the plan does to them, as lines of the preview, and their present status."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ....errors import SpecError, Unreachable
from ....plan.plan import Plan
from ....plan.scheduler import Machine
from ...base import ClusterRef
from ...docker.swarm.nodes import node_status
from ..price import costs
from . import machines, ssh
from .machines import planned_instance
from .model import Instance
from .user_data import GPU

_STATUS = {"pending": "booting", "stopping": "stopping", "stopped": "stopped"}
"""EC2's state of an instance to the machine's status, where the Swarm is not needed to know it."""


def plan_lines(plan: Plan, surplus: Sequence[str]) -> list[str]:
    """One line for each machine that is created, replaced or terminated (`surplus`), with the tasks that restart."""
    lines = [line for machine in plan.needed_machines for line in _lines(plan, machine)]
    return [*lines, *_new_swarm(plan), *(f"{machine}: will be terminated" for machine in surplus)]


def _lines(plan: Plan, machine: Machine) -> list[str]:
    planned = planned_instance(machine)
    if not planned.instance_id:
        again = f" again ({planned.failed})" if planned.failed else ""
        return [f"{machine.name}: will be created{again}: {_properties(machine)}"]
    if planned.changes:
        tasks = ", ".join(task.hostname for task in plan.tasks if task.machine == machine.name)
        return [
            f"{machine.name}: will be replaced ({', '.join(planned.changes)}); tasks that restart: {tasks or 'none'}"
        ]
    if planned.state in ("stopping", "stopped"):
        start = f"aws ec2 start-instances --instance-ids {planned.instance_id}"
        return [
            f"{machine.name}: is stopped and will not be started. Run `{start}`, or terminate it to have it replaced"
        ]
    return []


def _properties(machine: Machine) -> str:
    planned = planned_instance(machine)
    labels = ", ".join(f"{key}={value}" for key, value in machine.labels.items())
    gpus = f"; {GPU}={len(machine.gpus)}" if machine.gpus else ""
    disks = f"; ebs_volumes: {', '.join(planned.disks)}" if planned.disks else ""
    return f"{machine.kind}, {planned.image_id}; {labels}{gpus}{disks}"


def _new_swarm(plan: Plan) -> list[str]:
    """The effect of a lost or replaced manager on the other machines."""
    staying = {machine.name for machine in plan.machines if planned_instance(machine).can_stay}
    manager = machines.manager(plan.machines).name
    if not staying or manager in staying or manager in plan.unneeded:
        return []
    is_gone = not any(planned_instance(machine).instance_id for machine in plan.machines if machine.name == manager)
    lost = "; checkpoints that were only on its disk are lost" if is_gone else ""
    return [f"{manager}: manages the Swarm, so a new Swarm is created, and all tasks restart{lost}"]


def observe_machines(cluster: ClusterRef, is_preview: bool) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The status and the public address of each existing machine. The ledger of costs gets the observation too, but not that of
    a preview.

    Raises:
        Unreachable: EC2 does not respond.
    """
    existing = machines.existing(cluster)
    if not is_preview:
        costs.record_observation(cluster, existing)
    instances = {instance.machine: instance for instance in existing}
    nodes: Mapping[str, Any] = {}
    with suppress(Unreachable, SpecError):
        listed = ssh.engine(cluster).call(lambda api: api.nodes())
        nodes = {node["Description"]["Hostname"]: node for node in listed}
    status = {name: machine_status(instance, nodes.get(name)) for name, instance in instances.items()}
    return status, {name: instance.public_ip for name, instance in instances.items()}


def machine_status(instance: Instance, node: Mapping[str, Any] | None) -> str:
    """The status of a machine, from its instance and its node of the Swarm (None before it has joined)."""
    if instance.state in _STATUS:
        return _STATUS[instance.state]
    if node is None:
        return "connecting"
    if node["Status"]["State"] != "ready":
        return f"unreachable since {node['UpdatedAt'][:19].replace('T', ' ')}Z"
    return node_status(node) or "connected"
