"""The environment of a task: `TF_CONFIG`, and the variables that a user sets. Pure.

`TF_CONFIG`: https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable; `environment`, and
an evaluator that is not in the cluster, are as in Kubeflow's TFJob.
"""

import json
from typing import Any, Dict, Mapping, Sequence

from ..model.run_spec import RunSpec
from ..model.run_state import TENSORBOARD
from ..model.task_command import TaskAddress, fill, folders, hosts, placeholders, role

CLUSTER_JOBS = ("chief", "ps", "worker")
"""The jobs in `TF_CONFIG`'s cluster. An evaluator is not one of them."""


def has_tf_config(book: Sequence[TaskAddress], task: TaskAddress, spec: RunSpec) -> bool:
    """Whether a task has `TF_CONFIG`. A program that is alone trains without a cluster: an Estimator and several strategies refuse a
    cluster of one worker. The rule is TFJob's (`isDistributed` in training-operator 1.9, pkg/controller.v1/tensorflow/util.go).
    TensorBoard and services are not part of the training, and a server of TensorFlow needs its own address."""
    if not _trains(task, spec):
        return False
    is_alone = sum(_trains(entry, spec) for entry in book) == 1
    return not is_alone or bool(spec.jobs[task.job].command)


def _trains(task: TaskAddress, spec: RunSpec) -> bool:
    return task.job != TENSORBOARD and not spec.is_service(task.job)


def tf_config(book: Sequence[TaskAddress], task: TaskAddress, spec: RunSpec) -> str:
    """`TF_CONFIG` as JSON. The chief is called `master` in it where the run asks for that.

    In the cluster of a task that only serves, the chief is left out: it is a client and does not serve. A session
    without device filters would wait for it for ever.
    """
    names = {"chief": "master"} if spec.master else {}
    jobs = [job for job in CLUSTER_JOBS if job != "chief" or not spec.jobs[task.job].command]
    cluster: Dict[str, Any] = {names.get(job, job): hosts(book, job) for job in jobs if hosts(book, job)}
    job, index = role(book, task)
    own_role = {"type": names.get(job, job), "index": index}
    return json.dumps({"cluster": cluster, "task": own_role, "environment": "cloud"})


def environment(
    book: Sequence[TaskAddress], task: TaskAddress, spec: RunSpec, secret_env: Mapping[str, str] = {}
) -> Dict[str, str]:
    """The variables that tfdeploy sets for a task, overridden by the user's `env`; `secret_env` is its secret part.

    `GRPC_FAIL_FAST=use_caller` is what TensorFlow's guide asks of every task under `ParameterServerStrategy`:
    https://www.tensorflow.org/tutorials/distribute/parameter_server_training
    """
    values = placeholders(book, task)
    variables = {
        **({"TF_CONFIG": tf_config(book, task, spec)} if has_tf_config(book, task, spec) else {}),
        "GRPC_FAIL_FAST": "use_caller",
        "PYTHONUNBUFFERED": "1",
        "TFDEPLOY_HOSTNAME": task.hostname,
        "TFDEPLOY_ADDRESS": task.address,
        "TFDEPLOY_JOB_NAME": values["job_name"],
        "TFDEPLOY_TASK_INDEX": values["task_index"],
        "TFDEPLOY_PS_HOSTS": values["ps_hosts"],
        "TFDEPLOY_WORKER_HOSTS": values["worker_hosts"],
        **{
            f"TFDEPLOY_{job.upper()}_HOSTS": values.get(f"{job}_hosts", "")
            for job in spec.jobs
            if spec.is_service(job) and not spec.is_unlisted(job)
        },
        **({"TFDEPLOY_DATA_SERVICE": values["data_service"]} if "data_service" in values else {}),
        "TFDEPLOY_RUN": spec.id,
        "TFDEPLOY_DATA_DIR": spec.data_dir,
        "TFDEPLOY_TRAIN_DIR": spec.train_dir,
        "TFDEPLOY_CONTEXT": spec.context,
    }
    user = {**spec.env, **secret_env, **spec.jobs[task.job].env}
    return {**variables, **{name: fill(value, {**values, **folders(spec)}) for name, value in user.items()}}
