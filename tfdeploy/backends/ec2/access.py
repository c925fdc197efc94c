"""How a user gets at tasks and machines of a cluster on EC2: the contract is `backends.access.Access`."""

from ...errors import NotFound
from ..base import Cluster
from ..docker.access import DockerAccess
from ..docker.engine import Engine
from . import BACKEND, reach


class Ec2Access(DockerAccess):
    """The Swarm's tasks, as on `docker`; every machine is reached by ssh."""

    def _engine(self, cluster: Cluster, machine: str, hostname: str, container: str) -> Engine:
        """The engine of any machine."""
        return Engine(reach.address(cluster, machine) if machine else cluster["home"])

    def ssh(self, cluster: Cluster, machine: str) -> list[str]:
        """With the configuration that knows the machines and their keys."""
        known = reach.read(cluster).hosts
        if not known:
            raise NotFound(f"this computer knows no machine of {cluster['name']}. `pulumi preview` looks for them.")
        name = machine if machine in known else BACKEND.standing_on(cluster).get(machine, machine)
        if name not in known:
            raise NotFound(f"{cluster['name']} has no machine {machine!r}; it has {', '.join(known)}.")
        return ["ssh", "-F", str(reach.config(cluster)), name]


ACCESS = Ec2Access()
