"""The machines of a cluster on EC2: discovered, created, observed and deleted."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ....agent.model.run_state import UNKNOWN, UNREACHABLE
from ....errors import BackendError, SpecError, Unreachable
from ....plan.scheduler import Machine
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import PRIVATE, SSM
from ...base import GONE, ClusterRef, DependencyRequest, ObservedMachines, Retain
from ...docker.swarm.nodes import node_status
from ...parallel_calls import for_all
from .. import cleanup, record_bucket, validate
from ..aws import account, api
from ..ssh_key import read_stored_key
from ..swarm import MachineSwarm
from . import boot, machines, ssh
from .model import MachineState

_READERS = 10
"""How many consoles are read at the same time."""

_STATUS = {"pending": "booting", "stopping": "stopping", "stopped": "stopped"}
"""EC2's state of an instance to the machine's status, where the Swarm is not needed to know it."""


class Ec2MachineProvider:
    """The contract is `backends.base.MachineProvider`."""

    def inspect(self, cluster: ClusterRef, spec: ClusterSpec) -> tuple[Sequence[Machine], Sequence[str]]:
        """The machines that the cluster needs, and the surplus. From then on this process reaches those that run."""
        validate.refuse_spec(spec)
        inventory = machines.take_inventory(cluster, spec)
        needed = machines.plan_machines(spec, inventory)
        validate.refuse_inventory(spec, inventory, needed)
        hosts = discover_hosts(cluster, spec, inventory.instances.values())
        ssh.use(cluster, hosts, read_stored_key(cluster) if hosts.hosts else "")
        names = {machine.name for machine in needed}
        surplus = [item for name, item in inventory.instances.items() if name not in names]
        return needed, [f"{instance.machine} ({instance.instance_id})" for instance in surplus]

    def register(self, request: DependencyRequest[Any]) -> MachineSwarm:
        """Key, security group, shared files, bucket, machines, and their Swarm."""
        from ..resources import register

        key = ssh.public_key(request.spec)
        run, needed = request.inventory.run, request.plan.needed_machines
        is_open = run is not None and run.result is None
        return register(request.name, request.cluster, request.spec, needed, key, request.opts, is_open)

    def observe(self, cluster: ClusterRef) -> ObservedMachines:
        """What EC2 and the Swarm report, and which of the machines could not boot."""
        instances: Mapping[str, MachineState] = {}
        problems: tuple[str, ...] = ()
        try:
            instances = {instance.machine: instance for instance in machines.existing(cluster)}
        except (BackendError, SpecError) as error:
            problems = (str(error),)
        nodes: Mapping[str, Any] = {}
        with suppress(Unreachable, SpecError):
            listed = ssh.engine(cluster).call(lambda api: api.nodes()) if not problems else []
            nodes = {node["Description"]["Hostname"]: node for node in listed}
        failures, region = boot.read_failures(cluster), ssh.region(cluster)
        is_managed = any(instance.is_manager for instance in instances.values())
        statuses = {name: machine_status(instance, nodes.get(name), is_managed) for name, instance in instances.items()}
        return ObservedMachines(
            statuses=statuses,
            others=UNKNOWN if problems else GONE,
            addresses={name: instance.public_ip for name, instance in instances.items()},
            failures={name: f"{failure.reason}\n{failure.console}".rstrip() for name, failure in failures.items()},
            remedies={
                name: terminate_remedy(region, name, instances[name].instance_id)
                for name, status in statuses.items()
                if status.startswith(UNREACHABLE)
            },
            problems=problems,
        )

    def verify(self, cluster: ClusterRef, place_id: str) -> None:
        """Check the account of the credentials: in another one nothing is found, and the machines would be forgotten."""
        account.verify(cluster, place_id)

    def delete_all(self, cluster: ClusterRef, retain: Retain) -> str:
        """Remove all that has the cluster's tags; what is on the machines is deleted with them."""
        region = ssh.region(cluster)
        file_systems = cleanup.delete_tagged(region, machines.id_tag(cluster), retain["volumes"])
        boot.forget_failures(cluster)
        cleanup.delete_roles(region, machines.role_path(cluster))
        record = record_bucket.retire(cluster, retain["record"])
        return "; ".join(
            filter(None, [record, *(f"the shared files are retained: efs={name}" for name in file_systems)])
        )


def discover_hosts(cluster: ClusterRef, spec: ClusterSpec, instances: Iterable[MachineState]) -> ssh.SshHosts:
    """How ssh reaches the machines that run, whichever computer created them, by the access with which each was created. Stores
    nothing."""
    running = [instance for instance in instances if instance.state == "running"]
    stored = ssh.read(cluster).host_keys

    def key_of(instance: MachineState) -> str:
        """The stored key, or the one that the console shows."""
        with suppress(Unreachable):
            return stored.get(instance.instance_id) or boot.host_key(
                api.retry_throttled(lambda: api.console(ssh.region(cluster), instance.instance_id))
            )
        return ""

    hosts = {}
    for instance, key in zip(running, for_all(running, key_of, _READERS), strict=True):
        addresses = {PRIVATE: instance.private_ip, SSM: instance.instance_id}
        if key:
            address = addresses.get(instance.access, instance.public_ip)
            hosts[instance.machine] = ssh.Host(instance.instance_id, address, key)
    if not hosts:
        return ssh.SshHosts()
    managers = (instance.machine for instance in running if instance.is_manager and instance.machine in hosts)
    return ssh.SshHosts(next(managers, ""), spec.ec2.ssh_user, hosts)


def terminate_remedy(region: str, machine: str, instance_id: str) -> str:
    """What the user can do for the tasks of a machine that does not respond: only EC2 confirms its end."""
    command = f"aws ec2 terminate-instances --region {region} --instance-ids {instance_id}"
    return f"If {machine} does not respond again, `{command}` and then `pulumi up` start its tasks on a new machine."


def machine_status(instance: MachineState, node: Mapping[str, Any] | None, is_managed: bool = True) -> str:
    """The status of a machine, from its instance and its node of the Swarm (None before it has joined), which nobody knows where the
    Swarm's manager is gone: not `is_managed`."""
    if instance.state in _STATUS:
        return _STATUS[instance.state]
    if node is None:
        return "connecting" if is_managed else UNKNOWN
    if node["Status"]["State"] != "ready":
        return f"unreachable since {node['UpdatedAt'][:19].replace('T', ' ')}Z"
    return node_status(node) or "connected"
