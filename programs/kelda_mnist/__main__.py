"""MNIST as Kelda had it: one program declares the machines and what runs on them."""

import pulumi

from tfdeploy import TensorFlowCluster, TensorFlowClusterArgs

asked = pulumi.Config("tfdeploy")  # what the stack says of the arguments for which this program has a default
local = (asked.get("backend") or "local") == "local"

# A master, which holds the parameter server, and a machine for each worker.
machines: TensorFlowClusterArgs = {
    "ps": 1,
    "workers": asked.get_int("workers", 3),
    "region": asked.get("region") or pulumi.Config("aws").get("region") or "us-west-2",
    "instance_type": asked.get("instance_type") or "m7i.large",
    "spot": asked.get_bool("spot", False),
}

cluster = TensorFlowCluster(
    "mnist",
    machines,
    command=["python", "main.py"],
    code="job",  # shipped as it is: another script needs no other image
    requirements=asked.get_object("requirements", ["einops==0.8.1"]),
    data_dir=asked.get("data_dir") or ("data" if local else ""),
    metrics={"accuracy": r"MNIST accuracy: (\S+)"},
)
pulumi.export("status", cluster.status)
pulumi.export("state", cluster.state)
pulumi.export("tasks", cluster.tasks)
pulumi.export("machines", cluster.machines)
pulumi.export("logs", cluster.logs)
pulumi.export("cost", cluster.cost)
pulumi.export("accuracy", cluster.metrics["accuracy"])
