"""The model comes home: after `pulumi destroy` it loads from the record, and is as good as the output reported."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.programs.program import Program

LOADS = """
import json, pathlib, sys
import numpy as np
import tensorflow as tf

folder, data = map(pathlib.Path, sys.argv[1:])
(model,) = folder.glob("export/*")
with np.load(data) as arrays:
    images, labels = arrays["x_test"].astype("float32") / 255, arrays["y_test"]
loaded = tf.saved_model.load(str(model))
predicted = np.argmax(loaded.serve(images), axis=1)
newest = tf.train.latest_checkpoint(str(folder / "checkpoints"))
step = tf.train.load_checkpoint(newest).get_tensor("step/.ATTRIBUTES/VARIABLE_VALUE")
print(json.dumps({"accuracy": float(np.mean(predicted == labels)), "newest": newest, "step": int(step)}))
"""


def loaded(folder: Path, data: Path) -> dict[str, object]:
    """What TensorFlow finds in the artifacts."""
    done = subprocess.run(
        [sys.executable, "-c", LOADS, str(folder), str(data)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_model_and_the_newest_checkpoint_are_here_after_destroy(programs: Callable[[str], Program]) -> None:
    program = programs("tfjob_keras")
    program.set("strategy", "alone")
    program.set("steps", "200")
    program.up()
    outputs = program.outputs()
    data = program.program / "data/mnist.npz"
    program.destroy()
    (program.program / "models").rename(program.program / "elsewhere")
    (folder,) = (program.folder / "state/tfdeploy").rglob("runs/*/artifacts")
    found = loaded(folder, data)
    assert found["newest"] == str(folder / "checkpoints/ckpt-200")
    assert found["step"] == 200
    assert abs(float(str(found["accuracy"])) - outputs["accuracy"]) < 0.0002
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "checkpoint",
        "ckpt-200.data-00000-of-00001",
        "ckpt-200.index",
    ]
