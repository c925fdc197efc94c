"""The machines of a cluster on EC2: discovered, created, observed and deleted."""

from collections.abc import Sequence

from ....agent.run_state import UNKNOWN
from ....errors import BackendError, SpecError
from ....plan.scheduler import Machine
from ....spec.cluster import ClusterSpec
from ...base import GONE, ClusterRef, DependencyRequest, ObservedMachines, Retain
from .. import cleanup, record_bucket, validate
from ..aws import account
from ..price import costs
from ..ssh_key import read_stored_key
from ..swarm import MachineSwarm
from . import boot_failures, known_hosts, machines, ssh, status


class Ec2MachineProvider:
    """The contract is `backends.base.MachineProvider`."""

    def inspect(self, cluster: ClusterRef, spec: ClusterSpec) -> tuple[Sequence[Machine], Sequence[str]]:
        """The machines that the cluster needs, and the surplus. From then on this process reaches those that run."""
        validate.refuse_spec(spec)
        inventory = machines.take_inventory(cluster, spec)
        validate.refuse_inventory(spec, inventory)
        hosts = known_hosts.discover(cluster, spec, inventory.instances.values())
        ssh.use(cluster, hosts, read_stored_key(cluster) if hosts.hosts else "")
        needed = machines.plan_machines(spec, inventory)
        surplus = inventory.instances.keys() - {machine.name for machine in needed}
        return needed, [
            f"{name} ({instance.instance_id})" for name, instance in inventory.instances.items() if name in surplus
        ]

    def register(self, request: DependencyRequest) -> MachineSwarm:
        """Key, security group, shared files, bucket, machines, and their Swarm."""
        from ..resources import register

        key = ssh.public_key(request.spec)
        return register(request.name, request.cluster, request.spec, request.plan.needed_machines, key, request.opts)

    def observe(self, cluster: ClusterRef, is_preview: bool = False) -> ObservedMachines:
        """What EC2 and the Swarm report, what the machines cost, and which of them could not boot."""
        problems: tuple[str, ...] = ()
        try:
            statuses, addresses = status.observe_machines(cluster, is_preview)
        except (BackendError, SpecError) as error:
            statuses, addresses, problems = {}, {}, (str(error),)
        failures = boot_failures.read(cluster)
        return ObservedMachines(
            statuses=statuses,
            others=UNKNOWN if problems else GONE,
            addresses=addresses,
            cost=costs.current_cost(cluster),
            failures={name: f"{failure.reason}\n{failure.console}".rstrip() for name, failure in failures.items()},
            problems=problems,
        )

    def verify(self, cluster: ClusterRef, place_id: str) -> None:
        """Check the account of the credentials: in another one nothing is found, and the machines would be forgotten."""
        account.verify(cluster, place_id)

    def delete_all(self, cluster: ClusterRef, retain: Retain) -> str:
        """Remove all that has the cluster's tags; what is on the machines is deleted with them."""
        file_systems = cleanup.delete_all(cluster, retain["volumes"])
        record = record_bucket.retire(cluster, retain["record"])
        return "; ".join(
            filter(None, [record, *(f"the shared files are retained: efs={name}" for name in file_systems)])
        )
