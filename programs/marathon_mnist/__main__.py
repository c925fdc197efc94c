"""MNIST on parameter servers and workers, configured like TensorFlow's template for Marathon."""

import pulumi

from tfdeploy import TensorFlowCluster, TensorFlowClusterArgs

config = pulumi.Config()
folders: TensorFlowClusterArgs = {"data_dir": config.require("data_dir")}
if train_dir := config.get("train_dir"):
    folders["train_dir"] = train_dir

# Your own image contains the program; without one, the folder `train` is copied to the tasks.
program, source = "mnist.py", TensorFlowClusterArgs(code="train")
if image := config.get("image_name"):
    program, source = "/mnist.py", TensorFlowClusterArgs(container={"image": image})
elif (pulumi.Config("tfdeploy").get_object("container") or {}).get("build"):
    program, source = "/mnist.py", TensorFlowClusterArgs()

cluster = TensorFlowCluster(
    config.require("name"),
    {**folders, **source},
    command=[
        "python",
        program,
        "--data_dir={data_dir}",
        "--train_dir={train_dir}",
        f"--train_steps={config.require_int('train_steps')}",
    ],
    metrics={"loss": r"^step \d+ loss (\S+)", "final_loss": r"^final loss (\S+)"},
)
pulumi.export("status", cluster.tasks.apply(lambda tasks: {task["hostname"]: task["status"] for task in tasks}))
pulumi.export("state", cluster.state)
pulumi.export("tasks", cluster.tasks)
pulumi.export("endpoints", cluster.endpoints)
pulumi.export("logs", cluster.logs)
pulumi.export("loss", cluster.metrics["loss"])
pulumi.export("final_loss", cluster.metrics["final_loss"])
