"""In-graph TensorFlow: ps and workers only serve gRPC, and one client drives them all.

The client is a task beside them, whose end is the job's; with `client` "none" there are servers alone, for one of yours.
"""

import pulumi

from tfdeploy import TensorFlowCluster, TensorFlowClusterArgs

RESULTS = {"plus.py": {"sum": r"^(\d+)$"}, "mnist.py": {"accuracy": r"^accuracy: (\S+)"}, "none": {}}

client = pulumi.Config().get("client") or "plus.py"
asked = pulumi.Config("tfdeploy")
results = RESULTS[client]
inside: TensorFlowClusterArgs = {"chief": 1, "command": ["python", client], "code": "."} if client != "none" else {}
if client == "mnist.py":
    inside["data_dir"] = asked.get("data_dir") or "data"

cluster = TensorFlowCluster(
    "cluster",
    inside,
    serve=True,
    ps=asked.get_int("ps") or 2,
    workers=asked.get_int("workers") or 2,
    metrics=results,
)
pulumi.export("status", cluster.status)
pulumi.export("tasks", cluster.tasks)
pulumi.export("endpoints", cluster.endpoints)
for name in results:
    pulumi.export(name, cluster.metrics[name])
