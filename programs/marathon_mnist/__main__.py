"""MNIST on parameter servers and workers, set as TensorFlow's template for Marathon was: by its head alone."""

import pulumi

from tfdeploy import TensorFlowCluster

config = pulumi.Config()
image = config.get("image_name")
# An image of one's own holds the program; without one it is shipped.
holds_program = bool(image or pulumi.Config("tfdeploy").get("build"))

cluster = TensorFlowCluster(
    config.require("name"),
    image=image,
    code=None if holds_program else "train",
    command=[
        "python",
        "/mnist.py" if holds_program else "mnist.py",
        "--data_dir={data_dir}",
        "--train_dir={train_dir}",
        f"--train_steps={config.require_int('train_steps')}",
    ],
    data_dir=config.require("data_dir"),
    train_dir=config.get("train_dir"),
    metrics={"loss": r"^step \d+ loss (\S+)", "final_loss": r"^final loss (\S+)"},
)
pulumi.export("status", cluster.status)
pulumi.export("state", cluster.state)
pulumi.export("tasks", cluster.tasks)
pulumi.export("endpoints", cluster.endpoints)
pulumi.export("logs", cluster.logs)
pulumi.export("loss", cluster.metrics["loss"])
pulumi.export("final_loss", cluster.metrics["final_loss"])
