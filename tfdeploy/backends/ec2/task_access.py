"""Access to tasks and machines of a cluster on EC2: the contract is `backends.base.TaskAccess`."""

from contextlib import suppress

from ...errors import BackendError, NotFound, SpecError, Unreachable
from ..base import ClusterRef
from ..docker.engine.engine import Engine
from ..docker.planner import task_machines
from ..docker.swarm.swarm import Swarm
from ..docker.task_access import DockerAccess
from .machine import ssh
from .machine.machine_provider import terminate_remedy


class Ec2Access(DockerAccess):
    """The Swarm's tasks, as on `docker`; every machine is reached by ssh."""

    def _machine_engine(self, cluster: ClusterRef, machine: str, hostname: str, container: str) -> Engine:
        """The engine of any machine."""
        return ssh.engine(cluster, machine)

    def lost_effect(self, cluster: ClusterRef, machine: str) -> str:
        """EC2 itself knows whether a machine has ended."""
        host = ssh.read(cluster).hosts.get(machine)
        if host is None:
            raise NotFound(f"this computer does not know a machine {machine} of {cluster['name']}.")
        raise BackendError(terminate_remedy(ssh.region(cluster), machine, host.instance_id))

    def ssh(self, cluster: ClusterRef, machine: str) -> list[str]:
        """With the configuration file that has the machines and their keys."""
        hosts = ssh.read(cluster).hosts
        if not hosts:
            raise NotFound(
                f"this computer does not know the machines of {cluster['name']}. `pulumi up` discovers them."
            )
        name = machine if machine in hosts else _machine_of(cluster, machine)
        if name not in hosts:
            raise NotFound(f"{cluster['name']} has no machine {machine!r}; it has {', '.join(hosts)}.")
        return ["ssh", "-F", str(ssh.config_file(cluster)), name]


def _machine_of(cluster: ClusterRef, hostname: str) -> str:
    """The machine of a task; the name itself where no task has it, or the Swarm does not respond."""
    with suppress(Unreachable, SpecError):
        return task_machines(Swarm(ssh.engine(cluster), cluster).services()).get(hostname, hostname)
    return hostname
