"""What `programs/mnist` has trained, as it is stored on this computer after `pulumi destroy`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.integration.conftest import ROOT

DIGITS = ROOT / "programs/mnist/train/digits.npz"

LOADS = """
import json, pathlib, sys
import numpy as np
import tensorflow as tf

folder, data = map(pathlib.Path, sys.argv[1:])
with np.load(data) as arrays:
    images, labels = arrays["x_test"], arrays["y_test"]
predict = tf.saved_model.load(str(folder / "export")).signatures["serving_default"]
predicted = predict(images=tf.constant(images))["digits"].numpy()
newest = tf.train.latest_checkpoint(str(folder))
step = tf.train.load_variable(newest, "global_step")
print(json.dumps([float(np.mean(predicted == labels)), newest, int(step)]))
"""


class Trained(NamedTuple):
    """What TensorFlow finds in the artifacts of a run."""

    accuracy: float
    """Of the exported model, on the digits that it was not trained on."""
    checkpoint: str
    step: int


def stored_model(state_folder: Path) -> Trained:
    """The only model below a state folder, loaded by TensorFlow."""
    (folder,) = (state_folder / "tfdeploy").rglob("runs/*/artifacts")
    command = [sys.executable, "-c", LOADS, str(folder), str(DIGITS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    trained = Trained(*json.loads(done.stdout.splitlines()[-1]))
    assert Path(trained.checkpoint).parent == folder
    return trained
