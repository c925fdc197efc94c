"""What every backend refuses before anything is created."""

import os
from collections.abc import Sequence
from pathlib import Path

from ..agent.control.elastic import FIRST_WORKER
from ..errors import SpecError
from ..plan.plan import Plan
from ..spec.cluster import ClusterSpec


def refuse_script(spec: ClusterSpec, code_files: Sequence[str]) -> None:
    """A script that is given to Python must be a file of the code."""
    script = spec.command[1] if len(spec.command) > 1 and spec.command[0].startswith("python") else ""
    is_in_code = script.endswith(".py") and not Path(script).is_absolute() and "{" not in script
    if is_in_code and os.path.normpath(script) not in code_files:
        has = ", ".join(code_files[:8]) or "no files (is `code` missing?)"
        raise SpecError(f"{spec.name}: command", f"{script!r} is not a file of `code`", f"It has {has}.")


def refuse_requirements(spec: ClusterSpec) -> None:
    """Each requirement must be one that pip can read."""
    if not spec.requirements:
        return
    from packaging.requirements import InvalidRequirement, Requirement  # takes long to load

    for line in spec.requirements:
        try:
            Requirement(line)
        except InvalidRequirement as error:
            wrong = f"{line!r} is not a valid requirement ({str(error).splitlines()[0]})"
            raise SpecError(f"{spec.name}: requirements", wrong, 'It takes lines such as "pandas==2.2.3".') from None


def refuse_elastic_on_machines(spec: ClusterSpec, plan: Plan) -> None:
    """In the network of the machines a worker has the address of its machine, which is not known before it exists."""
    if spec.max_workers and len(plan.machines) > 1:
        wrong = (
            f'the network "host" of {len(plan.machines)} machines has no addresses for workers that do not exist yet'
        )
        raise SpecError(f"{spec.name}: elastic", wrong, 'Use container.network="overlay", or one machine.')


def refuse_same_ports(plan: Plan) -> None:
    """Two tasks of one machine cannot have the same port, also if one of them is a worker that may be added."""
    first = next((task.machine for task in plan.tasks if task.hostname == FIRST_WORKER), "")
    worker_port = plan.run.worker_port
    uses = [(task.machine, task.port, task.hostname, task.job) for task in plan.tasks]
    if worker_port:
        uses += [(first, worker_port + task.index, task.hostname, task.job) for task in plan.absent_workers]
    hostnames: dict[tuple[str, int], str] = {}
    for machine, port, hostname, job in uses:
        place = (machine, port)
        if port and place in hostnames:
            where = f"{plan.cluster}: jobs.{job}.port"
            remedy = "The tasks of a job use consecutive ports that begin with this one."
            raise SpecError(
                where,
                f"both {hostnames[place]} and {hostname} would use port {port} on {machine}",
                remedy,
            )
        hostnames[place] = hostname
