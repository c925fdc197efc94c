"""Tasks on machines of Amazon EC2 that are created for the cluster: a machine provider, composed with docker's task runner."""

from functools import partial
from importlib.util import find_spec

from ..backend import Backend, lazy
from ..base import Discovery
from .discover import discover_clusters, health
from .machine.machine_provider import Ec2MachineProvider
from .task_runner import Ec2TaskRunner

for _package in ("pulumi_aws", "pulumi_docker"):  # imported where they are used, because that takes long
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)

_machine_provider = Ec2MachineProvider()
_runner = Ec2TaskRunner(_machine_provider)


BACKEND = Backend(
    partial(lazy(f"{__package__}.planner", "Ec2Planner"), _machine_provider),
    lambda: _runner,
    partial(lazy(f"{__package__}.task_access", "Ec2Access"), _runner),
    Discovery(discover_clusters, health),
    restore_command="pulumi up",
    machine_provider=_machine_provider,
)
