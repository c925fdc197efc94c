"""What the unit tests make their cases from: a machine, specs, plans, and texts kept in files."""

import difflib
import errno
import os
import shlex
from pathlib import Path
from typing import Any

from tfdeploy.agent.launch import task_environment
from tfdeploy.agent.model import task_command
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.record import Record
from tfdeploy.plan.inventory import Inventory
from tfdeploy.plan.plan import Plan, make_plan
from tfdeploy.plan.scheduler import Machine
from tfdeploy.spec.backends import JOB_MAPPINGS
from tfdeploy.spec.cluster import ClusterSpec, cluster_spec

BOX = Machine("box", "Master", "local", "", cpus=8.0, memory=16 * 1024**3, gpus=("0", "1"))
"""The one machine that plans are made for."""

_GOLDENS = Path(__file__).parent / "goldens"


def spec(name: str = "mnist", **args: Any) -> ClusterSpec:
    """A spec; by default the command is `python train.py`, and the backend is one that uses the groups of these arguments."""
    jobs = [job for mapping in JOB_MAPPINGS for job in args.get(mapping, {}).values()]
    own = [group for job in jobs if isinstance(job, dict) for group in job]
    backend = "ec2" if "ec2" in (*args, *own) else "docker" if {"container", "docker"} & {*args, *own} else "local"
    defaults = (
        {"backend": backend}
        if args.get("standalone_servers")
        else {"command": ["python", "train.py"], "backend": backend}
    )
    return cluster_spec(name, {**defaults, **args})


def plan(name: str = "mnist", code: str = "", **args: Any) -> Plan:
    asked = spec(name, **args)
    return make_plan(asked, inventory(asked), code)


def plan_text(made: Plan) -> str:
    """A plan as the goldens have it. Addresses are symbolic, `ps-0:port`: a task's port is known only on its machine."""
    tasks = [
        task_command.TaskAddress(task.hostname, task.job, task.index, f"{task.hostname}:port") for task in made.tasks
    ]
    addresses, rows = [*tasks, *made.absent_workers], []
    for task, own in zip(made.tasks, tasks, strict=True):
        values = {**task_command.placeholders(addresses, own), **task_command.folders(made.run)}
        limits = f"cpus={task.limits.cpus:g} memory={task.limits.memory} gpus={','.join(task.gpus)}"
        rows += [f"  {task.hostname} on {task.machine} {limits}"]
        rows += [f"    {shlex.join(task_command.task_command(made.run, task.job, values))}"]
        if task_environment.has_tf_config(addresses, own, made.run):
            rows += [f"    TF_CONFIG={task_environment.tf_config(addresses, own, made.run)}"]
    return "\n".join([made.summary, f"  {made.success_rule}", *rows])


def inventory(asked: ClusterSpec, *machines: Machine, **more: Any) -> Inventory:
    """What exists before the plan of this spec: these machines, or BOX."""
    known: dict[str, Any] = {
        "machines": machines or (BOX,),
        "train_dir": asked.train_dir or "/train",
        "data_dir": asked.data_dir,
        **more,
    }
    return Inventory(**known)


def stored_run(record: Record) -> RunState:
    """The current run of a record that has one."""
    run = record.current()
    assert run is not None
    return run


def no_space(*_: Any, **__: Any) -> Any:
    """In the place of what writes to a disk: the disk is full."""
    raise OSError(errno.ENOSPC, "No space left on device")


def changed_lines(before: str, after: str) -> str:
    """The lines of `after` that `before` does not have, and those that it has instead, with their numbers."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return "\n".join([*lines][2:])


def check_golden(name: str, text: str) -> None:
    """Compare with the text kept in `goldens/`; RENEW_GOLDENS=1 writes it anew, for a person to read in the diff."""
    path = _GOLDENS / f"{name}.txt"
    if os.environ.get("RENEW_GOLDENS"):
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()
