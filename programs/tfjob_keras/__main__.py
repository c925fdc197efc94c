"""A TFJob: replicas that find each other by TF_CONFIG, and a model that is served."""

from typing import Any

import pulumi

from tfdeploy import TensorFlowCluster

REPLICAS: dict[str, dict[str, Any]] = {
    "alone": {"chief": True},
    "multi_worker": {"chief": True, "workers": 1},
    # The workers of this strategy only serve, and do not end by themselves.
    "parameter_server": {"chief": True, "ps": 1, "workers": 2, "evaluator": True, "worker_timeout": "0"},
}

settings = pulumi.Config()
strategy = settings.get("strategy") or "multi_worker"
if strategy not in REPLICAS:
    raise pulumi.RunError(f"strategy: {strategy!r} is not valid. Use one of: {', '.join(REPLICAS)}.")

# `pulumi config set tfdeploy:NAME` overrides these.
defaults: dict[str, Any] = {
    **REPLICAS[strategy],
    "data_dir": "data",
    "train_dir": "models",
    "stop_grace_period": "30s",
    "restart": {"maximum": 5, "on": ["signal", "75"]},
}
configured = pulumi.Config("tfdeploy")
tfjob = TensorFlowCluster(
    "tfjob",
    command=["python", "train.py", f"--strategy={strategy}", f"--steps={settings.get_int('steps') or 600}"],
    code="train",
    metrics={"loss": r"loss (\S+)", "accuracy": r"^accuracy: (\S+)", "export": r"^exported (\S+)"},
    **{name: value for name, value in defaults.items() if configured.get(name) is None},
)
pulumi.export("status", tfjob.tasks.apply(lambda tasks: {task["hostname"]: task["status"] for task in tasks}))
pulumi.export("state", tfjob.state)
pulumi.export("tasks", tfjob.tasks)
pulumi.export("logs", tfjob.logs)
pulumi.export("endpoints", tfjob.endpoints)
for name in ("loss", "accuracy", "export"):
    pulumi.export(name, tfjob.metrics[name])
