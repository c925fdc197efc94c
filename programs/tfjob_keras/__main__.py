"""A TFJob: replicas that know each other by TF_CONFIG, and a model that is served."""

from typing import Any

import pulumi

from tfdeploy import TensorFlowCluster

REPLICAS: dict[str, dict[str, Any]] = {
    "alone": {"chief": 1},
    "multi_worker": {"chief": 1, "workers": 1},
    "parameter_server": {"chief": 1, "ps": 1, "workers": 2, "evaluator": 1},
}

settings = pulumi.Config()
strategy = settings.get("strategy") or "multi_worker"
if strategy not in REPLICAS:
    raise pulumi.RunError(f"strategy: {strategy!r} is none. It takes one of: {', '.join(REPLICAS)}.")

# What `pulumi config set tfdeploy:NAME` says comes before these.
chosen: dict[str, Any] = {
    **REPLICAS[strategy],
    "data_dir": "data",
    "train_dir": "models",
    "grace": "30s",
    "restart": {"maximum": 5, "on": ["signal", "75"]},
}
configured = pulumi.Config("tfdeploy")
tfjob = TensorFlowCluster(
    "tfjob",
    command=["python", "train.py", f"--strategy={strategy}", f"--steps={settings.get_int('steps') or 600}"],
    code="train",
    metrics={"loss": r"loss (\S+)", "accuracy": r"^accuracy: (\S+)", "export": r"^exported (\S+)"},
    **{name: value for name, value in chosen.items() if configured.get(name) is None},
)
pulumi.export("status", tfjob.status)
pulumi.export("state", tfjob.state)
pulumi.export("tasks", tfjob.tasks)
pulumi.export("logs", tfjob.logs)
pulumi.export("endpoints", tfjob.endpoints)
for name in ("loss", "accuracy", "export"):
    pulumi.export(name, tfjob.metrics[name])
