"""From the address book of a cluster to what a task is told: the four flags, placeholders, `TF_CONFIG`. Pure.

Flags: https://github.com/tensorflow/ecosystem (distribution over a cluster manager). `TF_CONFIG`:
https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable; `environment` and
the evaluator's place outside the cluster are as Kubeflow's TFJob has them.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

from .states import GPU_WORKER, TENSORBOARD

FLAGS = ("job_name", "task_index", "ps_hosts", "worker_hosts")
"""The four standard flags, and the placeholders of the same names."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")

CLUSTER_JOBS = ("chief", "ps", "worker")
"""Jobs that stand in `TF_CONFIG`'s cluster; an evaluator looks on from outside."""


@dataclass(frozen=True)
class Entry:
    """One task in the address book."""

    hostname: str
    job: str
    index: int
    address: str
    """`host:port`"""


def role(book: Sequence[Entry], task: Entry) -> Tuple[str, int]:
    """The job and the index that a task has for TensorFlow."""
    if task.job != GPU_WORKER:
        return task.job, task.index
    return "worker", task.index + sum(entry.job == "worker" for entry in book)


def hosts(book: Sequence[Entry], job: str) -> List[str]:
    """The addresses of a job of TensorFlow's in the order of their index."""
    found = [(index, entry.address) for entry in book for name, index in [role(book, entry)] if name == job]
    return [address for _, address in sorted(found)]


def values(book: Sequence[Entry], task: Entry) -> Dict[str, str]:
    """What the placeholders of wiring stand for in this task."""
    job, index = role(book, task)
    return {
        "job_name": job,
        "task_index": str(index),
        "ps_hosts": ",".join(hosts(book, "ps")),
        "worker_hosts": ",".join(hosts(book, "worker")),
        "chief_hosts": ",".join(hosts(book, "chief")),
        "hostname": task.hostname,
        "address": task.address,
    }


def fill(text: str, known: Dict[str, str]) -> str:
    """Put values for `{name}`; braces around anything else are left as they are."""
    return _PLACEHOLDER.sub(lambda match: known.get(match.group(1), match.group()), text)


def command_line(command: Sequence[str], known: Dict[str, str]) -> List[str]:
    """The command with its placeholders filled; the four flags follow it unless it uses one of their placeholders."""
    own_way = any("{" + flag + "}" in part for part in command for flag in FLAGS)
    flags = [] if own_way else [f"--{flag}={known[flag]}" for flag in FLAGS]
    return [fill(part, known) for part in command] + flags


def command_of(run: Dict[str, Any], job: str, known: Dict[str, str]) -> List[str]:
    """The command of a job's task, with its placeholders filled: the job's own, else the run's with the flags."""
    own = run["jobs"][job].get("command", [])
    return [fill(part, known) for part in own] if own else command_line(run["command"], known)


def tf_config(book: Sequence[Entry], task: Entry, run: Dict[str, Any]) -> str:
    """`TF_CONFIG` as JSON text. The chief's name is `master` in it where the run says so."""
    names = {"chief": "master"} if run.get("master") else {}
    cluster: Dict[str, Any] = {names.get(job, job): hosts(book, job) for job in CLUSTER_JOBS if hosts(book, job)}
    job, index = role(book, task)
    mine = {"type": names.get(job, job), "index": index}
    return json.dumps({"cluster": cluster, "task": mine, "environment": "cloud"})


def environment(book: Sequence[Entry], task: Entry, run: Dict[str, Any]) -> Dict[str, str]:
    """The variables that tfdeploy sets for a task; the user's own `env` comes over them.

    `GRPC_FAIL_FAST=use_caller` is what TensorFlow's guide asks of every task under `ParameterServerStrategy`:
    https://www.tensorflow.org/tutorials/distribute/parameter_server_training
    """
    known = values(book, task)
    ours = {
        **({} if task.job == TENSORBOARD else {"TF_CONFIG": tf_config(book, task, run)}),
        "GRPC_FAIL_FAST": "use_caller",
        "PYTHONUNBUFFERED": "1",
        "TFDEPLOY_HOSTNAME": task.hostname,
        "TFDEPLOY_ADDRESS": task.address,
        "TFDEPLOY_JOB_NAME": known["job_name"],
        "TFDEPLOY_TASK_INDEX": known["task_index"],
        "TFDEPLOY_PS_HOSTS": known["ps_hosts"],
        "TFDEPLOY_WORKER_HOSTS": known["worker_hosts"],
        "TFDEPLOY_RUN": run["id"],
        "TFDEPLOY_DATA_DIR": run["data_dir"],
        "TFDEPLOY_TRAIN_DIR": run["train_dir"],
        "TFDEPLOY_CONTEXT": run["context"],
    }
    user = {**run["env"], **run["jobs"][task.job]["env"]}
    return {**ours, **{name: fill(value, {**known, **folders(run)}) for name, value in user.items()}}


def folders(run: Dict[str, Any]) -> Dict[str, str]:
    """The placeholders that are the same in every task of a run."""
    return {name: run[name] for name in ("data_dir", "train_dir", "context")}
