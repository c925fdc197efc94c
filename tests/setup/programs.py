"""A program of the user's own, outside a clone, that needs no TensorFlow."""

from pathlib import Path

from tests.pages import ROOT, blocks

PROGRAM, TRAINING = [block.text for block in blocks(ROOT / "README.md", "python")]
"""The program that README shows, and its training."""

SCRIPT = """\
import os, sys, time
print(sys.version.split()[0], *sys.argv[1:])
while os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    time.sleep(1)
print("weight 0.75")
"""


def write(folder: Path, script: str = SCRIPT) -> Path:
    """Write the program of README into a new folder, with this training."""
    (folder / "train").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: digits\nruntime: python\n")
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "train" / "train.py").write_text(script)
    return folder
