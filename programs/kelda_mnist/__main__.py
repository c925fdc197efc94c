"""MNIST as Kelda had it: one program declares the machines and what runs on them."""

import pulumi

from tfdeploy import TensorFlowCluster, TensorFlowClusterArgs

config = pulumi.Config()
where = pulumi.Config("tfdeploy").get("backend") or "local"

# A master, which holds the parameter server, and a worker machine for each worker.
machines: TensorFlowClusterArgs = {
    "ps": 1,
    "workers": config.get_int("workers") or 3,
    "region": config.get("region") or "us-west-2",
    "instance_type": config.get("size") or "m7i.large",
    "spot": config.get_bool("preemptible") or False,
}

cluster = TensorFlowCluster(
    "mnist",
    machines,
    command=["python", "main.py"],
    code="job",  # shipped as it is: another script needs no other image
    requirements=config.get_object("requirements", ["einops==0.8.1"]),
    data_dir=config.get("data_dir") or ("data" if where == "local" else None),
    metrics={"accuracy": r"MNIST accuracy: (\S+)"},
)
pulumi.export("status", cluster.status)
pulumi.export("state", cluster.state)
pulumi.export("tasks", cluster.tasks)
pulumi.export("machines", cluster.machines)
pulumi.export("logs", cluster.logs)
pulumi.export("cost", cluster.cost)
pulumi.export("accuracy", cluster.metrics["accuracy"])
