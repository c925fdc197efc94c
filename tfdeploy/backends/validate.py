"""What every backend refuses before anything is created."""

import os
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

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
    for line in spec.requirements:
        try:
            Requirement(line)
        except InvalidRequirement as error:
            wrong = f"{line!r} is not a valid requirement ({str(error).splitlines()[0]})"
            raise SpecError(f"{spec.name}: requirements", wrong, 'It takes lines such as "pandas==2.2.3".') from None


def refuse_same_ports(plan: Plan) -> None:
    """Two tasks of one machine cannot have the same port."""
    hostnames: dict[tuple[str, int], str] = {}
    for task in plan.tasks:
        place = (task.machine, task.port)
        if task.port and place in hostnames:
            where = f"{plan.cluster}: jobs.{task.job}.port"
            remedy = "The tasks of a job use consecutive ports that begin with this one."
            raise SpecError(
                where,
                f"both {hostnames[place]} and {task.hostname} would use port {task.port} on {task.machine}",
                remedy,
            )
        hostnames[place] = task.hostname
