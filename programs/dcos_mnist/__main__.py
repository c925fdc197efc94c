"""A job as TensorFlow on DC/OS took it: `pulumi config set options "$(cat mnist.json)"` sets all of it, with that file's own names."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi

from tfdeploy import TensorFlowCluster, TensorFlowClusterArgs

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


def known(section: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A section of the options over its defaults; what nobody reads is refused."""
    names = SERVICE if section == "service" else ROLE
    for name in given:
        if name not in names:
            raise pulumi.RunError(f"options: {section}: {name!r} is unknown. It knows {', '.join(names)}.")
    return {**DEFAULTS[section], **given}


def role(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the tasks of a role have; constraints are parted by commas, as there."""
    found = {name: given[name] for name in ("cpus", "gpus", "port", "volumes") if name in given}
    if given.get("mem"):
        found["memory"] = f"{given['mem']}MiB"
    if constraints := given.get("placement_constraint"):
        found["placement"] = [text.strip() for text in constraints.split(",")]
    return found


config = pulumi.Config()
options: dict[str, Any] = config.get_object("options") or {}
if unknown := sorted({*options} - {*DEFAULTS}):
    raise pulumi.RunError(f"options: {unknown[0]!r} is unknown. It knows {', '.join(DEFAULTS)}.")
sections = {section: known(section, options.get(section) or {}) for section in DEFAULTS}
service = sections["service"]
context = service.get("job_context") or {}
counts = {section: int(sections[section].get("count") or 0) for section in ("gpu_worker", "worker", "parameter_server")}
stand = {**counts, "tensorboard": int(bool(service.get("use_tensorboard")))}
jobs: dict[str, Any] = {ROLES[section]: role(sections[section]) for section, count in stand.items() if count}
if counts["gpu_worker"] and service.get("gpu_tf_image"):
    jobs["gpu_worker"]["image"] = service["gpu_tf_image"]

job = [f"--{name}={service[f'job_{name}']}" for name in ("url", "sha256", "path", "name") if service.get(f"job_{name}")]
asked: TensorFlowClusterArgs = {
    "command": ["python", "dcos.py", *job],
    "code": "service",
    "gpu_workers": counts["gpu_worker"],
    "workers": counts["worker"],
    "ps": counts["parameter_server"],
    "jobs": jobs,
    "context": json.loads(context) if isinstance(context, str) else context,
    "data_dir": config.get("data_dir") or "data",
    # A task that fails is started again, as there; not one whose job cannot be fetched, which ends with 78.
    "restart": {"on": ["signal", "oom", "1-77"]},
    "metrics": {"accuracy": r"MNIST accuracy: (\S+)", "loss": r"loss (\S+)"},
}
if service.get("shared_filesystem"):
    asked["train_dir"] = service["shared_filesystem"]
if service.get("use_tensorboard"):
    asked["tensorboard"] = True
if service.get("user"):
    asked["user"] = service["user"]
if service.get("tf_image"):
    asked["image"] = service["tf_image"]
if "virtual_network" in service:
    asked["network"] = "overlay" if service["virtual_network"] else "host"

cluster = TensorFlowCluster(service["name"], asked)
pulumi.export("status", cluster.status)
pulumi.export("state", cluster.state)
pulumi.export("tasks", cluster.tasks)
pulumi.export("machines", cluster.machines)
pulumi.export("logs", cluster.logs)
pulumi.export("endpoints", cluster.endpoints)
pulumi.export("cost", cluster.cost)
pulumi.export("observed_at", cluster.observed_at)
pulumi.export("accuracy", cluster.metrics["accuracy"])
