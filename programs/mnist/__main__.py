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
pulumi.export("status", mnist.tasks.apply(lambda tasks: {task["hostname"]: task["status"] for task in tasks}))
pulumi.export("accuracy", mnist.metrics["accuracy"])
pulumi.export("logs", mnist.logs.apply(lambda logs: logs.get("worker-0", [])[-2:]))
