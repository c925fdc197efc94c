"""The cluster that is measured; its size and its command come from the stack's configuration."""

import pulumi

from tfdeploy import TensorFlowCluster

cluster = TensorFlowCluster("bench", code="code", metrics={"accuracy": r"accuracy: (\S+)"})
pulumi.export("status", cluster.status)
pulumi.export("state", cluster.state)
pulumi.export("tasks", cluster.tasks)
pulumi.export("machines", cluster.machines)
pulumi.export("logs", cluster.logs)
pulumi.export("endpoints", cluster.endpoints)
pulumi.export("observed_at", cluster.observed_at)
pulumi.export("accuracy", cluster.metrics["accuracy"])
