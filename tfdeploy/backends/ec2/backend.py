"""Tasks on machines of Amazon EC2 that are created for the cluster: a machine provider, composed with docker's task runner."""

from importlib.util import find_spec
from typing import Any

from ..backend import Backend
from ..base import Discovery, Planner, TaskAccess
from .discover import discover_clusters, health
from .machine.machine_provider import Ec2MachineProvider
from .task_runner import Ec2TaskRunner

for _package in ("pulumi_aws", "pulumi_docker"):  # imported where they are used, because that takes long
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)

_machine_provider = Ec2MachineProvider()
_runner = Ec2TaskRunner(_machine_provider)


def _planner() -> Planner[Any]:
    from .planner import Ec2Planner

    return Ec2Planner(_machine_provider)


def _access() -> TaskAccess:
    from .task_access import Ec2Access

    return Ec2Access(_runner)


BACKEND = Backend(
    _planner,
    lambda: _runner,
    _access,
    Discovery(discover_clusters, health),
    restore_command="pulumi up",
    machine_provider=_machine_provider,
)
