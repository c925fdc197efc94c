"""A training that is slow because of its input, and tf.data service that prepares the input on other machines or cores."""

import pulumi

from tfdeploy import TensorFlowCluster

workers = pulumi.Config().get_int("workers") or 4
cluster = TensorFlowCluster(
    "cluster",
    command=["python", "train.py"],
    code="train",
    workers=1,
    data_service={"workers": workers},
    metrics={"epoch": r"^epoch \d+: (.*)"},
)
pulumi.export("status", cluster.tasks.apply(lambda tasks: {task["hostname"]: task["status"] for task in tasks}))
pulumi.export("epoch", cluster.metrics["epoch"])
