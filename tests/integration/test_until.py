"""docs/how-to/until.md: a metric ends a training that would go on for ever, and the lines of the page save the model."""

import zipfile
from pathlib import Path

from tests.integration.conftest import Project
from tests.pages import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "until.md"

SCRIPT = """\
import os

import numpy
import tensorflow as tf

{callback}

model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
images, labels = numpy.ones((64, 2)), numpy.ones((64, 1))


class Log(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"step {{epoch + 1}} accuracy: {{0.9 + epoch / 100}}", flush=True)


{fit}
"""


def test_a_metric_ends_the_training_and_the_model_is_saved(project: Project) -> None:
    _, callback, fit = (block.text for block in blocks(PAGE, "python"))
    endless = fit.replace("epochs=1000", "epochs=10**9, verbose=0").replace("StopInOrder()", "StopInOrder(), Log()")
    script = SCRIPT.format(callback=callback, fit=endless)
    arguments = (
        "workers=1, code='code', command=['python', 'train.py'], train_dir='trained', stop_grace_period='60s',"
        r"metrics={'accuracy': r'accuracy: (\S+)'}, until={'accuracy': '>= 0.95'}"
    )
    project.write(arguments, script)
    project.up()
    outputs = project.outputs()
    assert outputs["state"] == "succeeded"
    assert "Run succeeded: accuracy " in outputs["status"]
    assert " reached >= 0.95 at step " in outputs["status"]
    assert project.statuses() == {"worker-0": "stopped (run finished)"}
    (model,) = (project.program / "trained").glob("*/model.keras")
    assert zipfile.is_zipfile(model), "a model that was saved in part"
    (row,) = outputs["artifacts"]
    assert (row["name"], row["kind"], row["problem"]) == ("model.keras", "keras", "")
    assert Path(row["path"]).read_bytes() == model.read_bytes(), "it is stored as it was saved at SIGTERM"
    assert project.up().steps().keys() == {"unchanged"}, "a finished run stays finished"
