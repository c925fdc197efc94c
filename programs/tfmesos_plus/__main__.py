"""In-graph TensorFlow: ps and workers only run gRPC servers, and one client drives them all.

The client is the chief, and the run ends with it. With `client` set to "none" there are only servers, for your own client.
"""

import pulumi

from tfdeploy import TensorFlowCluster, TensorFlowClusterArgs

RESULTS = {"plus.py": {"sum": r"^(\d+)$"}, "mnist.py": {"accuracy": r"^accuracy: (\S+)"}, "none": {}}

client = pulumi.Config().get("client") or "plus.py"
arguments = pulumi.Config("tfdeploy")
results = RESULTS[client]
chief: TensorFlowClusterArgs = {"chief": True, "command": ["python", client], "code": "."} if client != "none" else {}
if client == "mnist.py":
    chief["data_dir"] = arguments.get("data_dir") or "data"

cluster = TensorFlowCluster(
    "cluster",
    chief,
    standalone_servers=True,
    ps=arguments.get_int("ps") or 2,
    workers=arguments.get_int("workers") or 2,
    metrics=results,
)
pulumi.export("status", cluster.tasks.apply(lambda tasks: {task["hostname"]: task["status"] for task in tasks}))
pulumi.export("tasks", cluster.tasks)
pulumi.export("endpoints", cluster.endpoints)
for name in results:
    pulumi.export(name, cluster.metrics[name])
