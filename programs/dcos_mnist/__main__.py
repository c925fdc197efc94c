"""A job with the options file of TensorFlow on DC/OS: `pulumi config set options "$(cat mnist.json)"`."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi

from tfdeploy import ContainerArgs, TensorFlowCluster, TensorFlowClusterArgs

ROLES = {"gpu_worker": "gpu_worker", "worker": "worker", "parameter_server": "ps", "tensorboard": "tensorboard"}
DEFAULTS: dict[str, dict[str, Any]] = {
    "service": {"name": "mnist", "job_name": "mnist"},
    "gpu_worker": {"count": 0},
    "worker": {"count": 2},
    "parameter_server": {"count": 1},
    "tensorboard": {},
}
SERVICE = (
    *("name", "job_url", "job_sha256", "job_path", "job_name", "job_context", "shared_filesystem", "use_tensorboard"),
    *("user", "tf_image", "gpu_tf_image", "virtual_network"),
)
ROLE = ("count", "cpus", "mem", "gpus", "port", "volumes", "placement_constraint")


def with_defaults(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A section of the options over its defaults; unknown names are refused."""
    names = SERVICE if section == "service" else ROLE
    for name in values:
        if name not in names:
            raise pulumi.RunError(f"options: {section}: {name!r} is unknown. Use one of: {', '.join(names)}.")
    return {**DEFAULTS[section], **values}


def job_args(role: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a job. As on DC/OS, commas separate constraints."""
    job = {name: role[name] for name in ("cpus", "gpus", "port") if name in role}
    container = {"volumes": role["volumes"]} if "volumes" in role else {}
    if role.get("mem"):
        job["memory"] = f"{role['mem']}MiB"
    if constraints := role.get("placement_constraint"):
        container["placement"] = [text.strip() for text in constraints.split(",")]
    return {**job, **({"container": container} if container else {})}


config = pulumi.Config()
options: dict[str, Any] = config.get_object("options") or {}
if unknown := sorted({*options} - {*DEFAULTS}):
    raise pulumi.RunError(f"options: {unknown[0]!r} is unknown. Use one of: {', '.join(DEFAULTS)}.")
sections = {section: with_defaults(section, options.get(section) or {}) for section in DEFAULTS}
service = sections["service"]
context = service.get("job_context") or {}
counts = {section: int(sections[section].get("count") or 0) for section in ("gpu_worker", "worker", "parameter_server")}
existing = {**counts, "tensorboard": int(bool(service.get("use_tensorboard")))}
jobs: dict[str, Any] = {ROLES[section]: job_args(sections[section]) for section, count in existing.items() if count}
if counts["gpu_worker"] and service.get("gpu_tf_image"):
    jobs["gpu_worker"].setdefault("container", {})["image"] = service["gpu_tf_image"]

job = [f"--{name}={service[f'job_{name}']}" for name in ("url", "sha256", "path", "name") if service.get(f"job_{name}")]
arguments: TensorFlowClusterArgs = {
    "command": ["python", "dcos.py", *job],
    "code": "service",
    "gpu_workers": counts["gpu_worker"],
    "workers": counts["worker"],
    "ps": counts["parameter_server"],
    "jobs": jobs,
    "context": json.loads(context) if isinstance(context, str) else context,
    "data_dir": config.get("data_dir") or "data",
    # As on DC/OS a failed task is restarted, except if its job could not be downloaded: then it exits with 78.
    "restart": {"on": ["signal", "oom", "1-77"]},
    "metrics": {"accuracy": r"MNIST accuracy: (\S+)", "loss": r"loss (\S+)"},
}
if service.get("shared_filesystem"):
    arguments["train_dir"] = service["shared_filesystem"]
if service.get("use_tensorboard"):
    arguments["tensorboard"] = True
container: ContainerArgs = {}
if service.get("user"):
    container["user"] = service["user"]
if service.get("tf_image"):
    container["image"] = service["tf_image"]
if "virtual_network" in service:
    container["network"] = "overlay" if service["virtual_network"] else "host"
if container:
    arguments["container"] = container

cluster = TensorFlowCluster(service["name"], arguments)
pulumi.export("status", cluster.tasks.apply(lambda tasks: {task["hostname"]: task["status"] for task in tasks}))
pulumi.export("state", cluster.state)
pulumi.export("tasks", cluster.tasks)
pulumi.export("machines", cluster.machines)
pulumi.export("logs", cluster.logs)
pulumi.export("endpoints", cluster.endpoints)
pulumi.export("cost", cluster.cost)
pulumi.export("accuracy", cluster.metrics["accuracy"])
