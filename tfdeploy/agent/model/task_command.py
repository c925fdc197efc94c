"""From the address book to the arguments of a task: the four standard flags and the placeholders of a command. Pure.

Flags: https://github.com/tensorflow/ecosystem (distribution over a cluster manager).
"""

import re
import shlex
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

from .json_data import JsonData
from .run_spec import RunSpec
from .run_state import GPU_WORKER

FLAGS = ("job_name", "task_index", "ps_hosts", "worker_hosts")
"""The four standard flags, and the placeholders of the same names."""

AGENT = "{agent}"
"""The placeholder for the path of the agent, in the commands that are part of it."""

AUTO, ALWAYS, NEVER = "auto", "always", "never"
"""Whether the four flags are appended to the command: the values of the argument `flags`."""

DATA_DISPATCHER, DATA_WORKER = "data_dispatcher", "data_worker"
"""The jobs of tf.data service."""

_DATA_SERVICE = "grpc://"

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class TaskAddress(JsonData):
    """One task in the address book."""

    hostname: str
    job: str
    index: int
    address: str
    """`host:port`"""


def role(book: Sequence[TaskAddress], task: TaskAddress) -> Tuple[str, int]:
    """The job and index by which TensorFlow knows a task."""
    if task.job != GPU_WORKER:
        return task.job, task.index
    return "worker", task.index + sum(entry.job == "worker" for entry in book)


def hosts(book: Sequence[TaskAddress], job: str) -> List[str]:
    """The addresses of one of TensorFlow's jobs, in the order of the index."""
    addresses = [(index, entry.address) for entry in book for name, index in [role(book, entry)] if name == job]
    return [address for _, address in sorted(addresses)]


def data_service(book: Sequence[TaskAddress]) -> Dict[str, str]:
    """The placeholder `data_service`, where the run has tf.data service: what `distribute` of TensorFlow gets as `service`."""
    dispatchers = hosts(book, DATA_DISPATCHER)
    return {"data_service": _DATA_SERVICE + dispatchers[0]} if dispatchers else {}


def data_service_address(value: str) -> str:
    """The dispatcher's address in a value of `data_service`."""
    return value[len(_DATA_SERVICE) :]


def placeholders(book: Sequence[TaskAddress], task: TaskAddress) -> Dict[str, str]:
    """The values of a task's placeholders."""
    job, index = role(book, task)
    return {
        **{f"{name}_hosts": ",".join(hosts(book, name)) for name in sorted({role(book, entry)[0] for entry in book})},
        "job_name": job,
        "task_index": str(index),
        "ps_hosts": ",".join(hosts(book, "ps")),
        "worker_hosts": ",".join(hosts(book, "worker")),
        "chief_hosts": ",".join(hosts(book, "chief")),
        "hostname": task.hostname,
        "address": task.address,
        "port": task.address.rpartition(":")[2],
        **data_service(book),
    }


def fill(text: str, values: Dict[str, str]) -> str:
    """Replace `{name}` by its value; other braces stay."""
    return _PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group()), text)


def appends_flags(spec: RunSpec) -> bool:
    """Whether the four flags are appended to the run's command.

    With the rule `auto` they are, where TensorFlow's programs for parameter servers expect them: there is a ps, there is no chief (a
    program with a chief reads `TF_CONFIG`), and the command uses none of their placeholders.
    """
    if spec.flags != AUTO:
        return spec.flags == ALWAYS
    uses_placeholders = any("{" + flag + "}" in part for part in spec.command for flag in FLAGS)
    return "ps" in spec.jobs and "chief" not in spec.jobs and not spec.serve and not uses_placeholders


def task_command(spec: RunSpec, job: str, values: Dict[str, str]) -> List[str]:
    """The command of a job's tasks with its placeholders filled: the job's own, else the run's and perhaps the flags."""
    job_command = spec.jobs[job].command
    flags = [f"--{flag}={values[flag]}" for flag in FLAGS] if not job_command and appends_flags(spec) else []
    return [fill(part, values) for part in job_command or spec.command] + flags


def shown_command(command: Sequence[str]) -> str:
    """A command as users see it: as it was written, and the agent's own commands by their names alone, such as `tensorboard`."""
    first = command.index(AGENT) + 1 if AGENT in command else 0
    return shlex.join(command[first:])


def folders(spec: RunSpec) -> Dict[str, str]:
    """The placeholders that are the same in every task of a run."""
    return {"data_dir": spec.data_dir, "train_dir": spec.train_dir, "context": spec.context}
