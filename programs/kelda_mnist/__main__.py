"""MNIST as with Kelda: one program declares the machines and the tasks on them."""

import pulumi

from tfdeploy import TensorFlowCluster, TensorFlowClusterArgs

configured = pulumi.Config("tfdeploy")  # the stack's configuration overrides the defaults of this program
local = (configured.get("backend") or "local") == "local"
ec2 = configured.get_object("ec2") or {}

# A master with the parameter server, and a machine for each worker. The group `ec2` has no effect on other backends.
machines: TensorFlowClusterArgs = {
    "ps": 1,
    "workers": configured.get_int("workers", 3),
    "ec2": {
        "region": ec2.get("region") or pulumi.Config("aws").get("region") or "us-west-2",
        "instance_type": ec2.get("instance_type", "m7i.large"),
        "spot": ec2.get("spot", False),
    },
}

cluster = TensorFlowCluster(
    "mnist",
    machines,
    command=["python", "main.py"],
    code="job",  # copied to the tasks: a changed script needs no new image
    requirements=configured.get_object("requirements", ["einops==0.8.1"]),
    data_dir=configured.get("data_dir") or ("data" if local else ""),
    metrics={"accuracy": r"MNIST accuracy: (\S+)"},
)
pulumi.export("status", cluster.status)
pulumi.export("state", cluster.state)
pulumi.export("tasks", cluster.tasks)
pulumi.export("machines", cluster.machines)
pulumi.export("logs", cluster.logs)
pulumi.export("cost", cluster.cost)
pulumi.export("accuracy", cluster.metrics["accuracy"])
