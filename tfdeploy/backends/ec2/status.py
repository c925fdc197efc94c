"""How the machines are: what the plan does to them, in sentences, and what EC2 and the Swarm say of them now."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...ec2 import account
from ...ec2.boot import GPU
from ...ec2.facts import Instance
from ...errors import SpecError, Unreachable
from ...placement import Machine
from ...plan import Plan
from ..base import Cluster
from ..docker.engine import Engine
from . import costs, fleet, reach

_WORDS = {"pending": "booting", "stopping": "stopping", "stopped": "stopped"}


def sentences(cluster: Cluster, plan: Plan) -> list[str]:
    """A line for each machine that is made, made anew, or goes, and which tasks that touches."""
    told = [line for machine in plan.machines if machine.name not in plan.unneeded for line in _sentence(plan, machine)]
    names = {machine.name for machine in plan.machines}
    there = account.instances(reach.region(cluster), fleet.tags(cluster))
    return [
        *told,
        *_new_swarm(plan),
        *(f"{one.machine} ({one.instance_id}) goes" for one in there if one.machine not in names),
    ]


def _sentence(plan: Plan, machine: Machine) -> list[str]:
    plot = fleet.plot_of(machine)
    labels = ", ".join(f"{key}={value}" for key, value in machine.labels.items())
    gpus = f"; {GPU}={plot['gpus']}" if plot["gpus"] else ""
    disks = f"; ebs_volumes: {', '.join(plot['disks'])}" if plot["disks"] else ""
    made = f"{plot['instance_type']}, {plot['image_id']}; {labels}{gpus}{disks}"
    tasks = ", ".join(task.hostname for task in plan.tasks if task.machine == machine.name)
    if not plot["instance_id"]:
        again = f" again ({plot['failed']})" if plot["failed"] else ""
        return [f"{machine.name} is made{again}: {made}"]
    if plot["changes"]:
        why = ", ".join(plot["changes"])
        return [f"{machine.name} is made anew ({why}); what stands there starts again: {tasks or 'nothing'}"]
    if plot["state"] in ("stopping", "stopped"):
        start = f"aws ec2 start-instances --instance-ids {plot['instance_id']}"
        return [f"{machine.name} is stopped, and stays so: `{start}` starts it; terminated, it is made again"]
    return []


def _new_swarm(plan: Plan) -> list[str]:
    """What the loss of the machine that manages means for the others."""
    stand = {machine.name for machine in plan.machines if fleet.stays(machine)}
    manager = fleet.manager(plan.machines).name
    if not stand or manager in stand or manager in plan.unneeded:
        return []
    return ["a new Swarm is formed: all tasks start again, and go on from their checkpoints"]


def seen(cluster: Cluster) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The status and the public address of each machine that EC2 has.

    Raises:
        Unreachable: EC2 does not answer.
    """
    found = account.instances(reach.region(cluster), fleet.tags(cluster))
    costs.look(cluster, found)
    there = {one.machine: one for one in found}
    nodes: Mapping[str, Any] = {}
    with suppress(Unreachable, SpecError):
        answer = Engine(cluster["home"]).call(lambda api: api.nodes())
        nodes = {node["Description"]["Hostname"]: node for node in answer}
    words = {name: _word(one, nodes.get(name)) for name, one in there.items()}
    return words, {name: one.public_ip for name, one in there.items()}


def _word(instance: Instance, node: Mapping[str, Any] | None) -> str:
    if instance.state in _WORDS:
        return _WORDS[instance.state]
    if node is None:
        return "connecting"
    if node["Status"]["State"] != "ready":
        return f"unreachable since {node['UpdatedAt'][:19].replace('T', ' ')}Z"
    return "connected" if node["Spec"]["Availability"] == "active" else str(node["Spec"]["Availability"])
