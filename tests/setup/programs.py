"""A program of the user's own, outside a clone, that needs no TensorFlow."""

from pathlib import Path

PROGRAM = """\
import pulumi
from tfdeploy import TensorFlowCluster

cluster = TensorFlowCluster(
    "digits",
    command=["python", "train.py"],
    code="train",
    ps=1,
    workers=2,
    metrics={"accuracy": r"accuracy: (\\S+)"},
)
pulumi.export("state", cluster.state)
pulumi.export("accuracy", cluster.metrics["accuracy"])
"""

SCRIPT = """\
import sys, time
print(sys.version.split()[0], *sys.argv[1:])
while "--job_name=ps" in sys.argv:
    time.sleep(1)
print("accuracy: 0.75")
"""


def write(folder: Path) -> Path:
    """Write the program of README into a new folder."""
    (folder / "train").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: digits\nruntime: python\n")
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "train" / "train.py").write_text(SCRIPT)
    return folder
