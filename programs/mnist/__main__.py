"""MNIST on a parameter-server cluster: one ps, two workers, the accuracy as a stack output."""

import pulumi

from tfdeploy import TensorFlowCluster

mnist = TensorFlowCluster(
    "mnist",
    command=["python", "train.py"],
    code="train",
    ps=1,
    workers=2,
    metrics={"accuracy": r"MNIST accuracy: (\S+)"},
)
pulumi.export("status", mnist.status)
pulumi.export("state", mnist.state)
pulumi.export("tasks", mnist.tasks)
pulumi.export("machines", mnist.machines)
pulumi.export("logs", mnist.logs)
pulumi.export("endpoints", mnist.endpoints)
pulumi.export("cost", mnist.cost)
pulumi.export("observed_at", mnist.observed_at)
pulumi.export("accuracy", mnist.metrics["accuracy"])
