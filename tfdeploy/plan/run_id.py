"""Which arguments name a run: with others, another run begins. Pure."""

import hashlib
import json

from ..agent.model import task_command
from ..agent.model.run_spec import RunSpec
from ..spec.cluster import ClusterSpec
from ..spec.unknown_values import Unknown, is_known
from .inventory import Inventory

_UNKNOWN = Unknown("the run's id")


def run_id(spec: ClusterSpec, inventory: Inventory, code: str) -> str:
    """What names the run: a hash of what determines the training."""
    services = {job.name: list(job.command) for job in spec.jobs if job.is_service}
    content = {
        "command": list(spec.command),  # the entry point of an image is not known everywhere
        "code": code,
        "env": dict(spec.env),
        **({"secret_env": sorted(spec.secret_env)} if spec.secret_env else {}),
        "jobs_env": {job.name: dict(job.env) for job in spec.training_jobs if job.env},
        **({"services": services} if services else {}),
        "requirements": list(spec.requirements),
        "data_dir": spec.data_dir,
        "context": spec.context,
        "run_id": spec.run_id,
        "resume_from": spec.resume_from,
        **({"image": inventory.image} if inventory.image else {}),
        **({"serve": True} if any(job.command and not job.is_service for job in spec.training_jobs) else {}),
        **({"master": True} if spec.tf_config_master else {}),
        **({"flags": spec.flags} if spec.flags != task_command.AUTO else {}),
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    return digest if is_known(content) else _UNKNOWN


def is_same_content(current: RunSpec, run: RunSpec) -> bool:
    """Whether a run has the content of a planned one. A changed value of its secret environment is known only to the update."""
    return run.id in (current.id, current.content_id)
