"""Programs for earlier versions of TensorFlow and Keras: what is advised for the errors that the installed ones really raise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.components.conftest import Standing
from tests.tensorflow_env import ONE_THREAD
from tests.unit.report.test_diagnosis import failed_task
from tfdeploy.report.remedies import exit_remedy

KERAS_2 = (
    "tf.keras.experimental",
    "tf.keras.layers.experimental",
    "keras.experimental",
    "keras.utils.np_utils",
    "__import__('keras.engine.topology')",
    "__import__('tensorflow.keras.wrappers.scikit_learn')",
    "tf.keras.backend.get_session",
    "tf.keras.optimizers.legacy.SGD(0.1)",
    "tf.keras.optimizers.Adam(lr=0.1)",
    "tf.keras.layers.Dense(1, weights=[1])",
    "tf.keras.callbacks.ModelCheckpoint('checkpoint')",
    "tf.keras.callbacks.ModelCheckpoint('checkpoint', save_weights_only=True)",
    "tf.keras.callbacks.ModelCheckpoint('checkpoint.keras', period=2)",
    "tf.keras.models.load_model('.')",
    "model().save('folder')",
    "model().save_weights('weights')",
    "model().fit_generator",
    "model().predict_classes",
    "model().compile('sgd', 'mse', options=1)",
    "tf.keras.optimizers.SGD(0.1).get_updates",
    "tf.keras.optimizers.SGD(0.1).apply_gradients([], experimental_aggregate_gradients=False)",
    "tf.compat.v1.layers.dense",
    "tf.reduce_sum(tf.keras.Input((3,)))",
    "tf.keras.Input((3,)).op",
    "tf.keras.metrics.Mean().reset_states()",
    "compiled(metrics='accuracy').fit(X, Y)",
    "compiled(weighted_metrics='mse').fit(X, Y)",
    "compiled().evaluate(X, Y, max_queue_size=2)",
    "compiled().fit(X, Y, workers=2)",
    "compiled().predict_proba",
    "compiled().to_yaml",
    "compiled().save_weights('x', save_format='tf')",
    "compiled().optimizer.lr",
    "compiled().optimizer.minimize",
    "compiled().optimizer.get_weights()",
    "compiled().layers[0].input_shape",
    "compiled().layers[0].get_input_shape_at(0)",
    "model().compile(tf.compat.v1.train.AdamOptimizer(), 'mse')",
    "tf.keras.callbacks.TensorBoard(write_grads=True)",
    "tf.keras.callbacks.EarlyStopping(period=1)",
    "tf.keras.initializers.TruncatedNormal(dtype=tf.float32)",
    "tf.keras.layers.Dense(output_dim=3)",
    "tf.keras.losses.MeanSquaredError(reduction='auto')",
    "tf.keras.regularizers.l2(l=0.1)",
    "tf.keras.Sequential([tf.Module()])",
    "tf.keras.utils.OrderedEnqueuer",
    "tf.keras.layers.Layer().add_metric(1)",
    "tf.keras.layers.Layer().add_update(1)",
    "tf.keras.layers.Layer().add_weight('w', (1,))",
)
IMPORTED_V1 = "__import__('tensorflow.compat.v1', fromlist=['v1'])"
ESTIMATOR = ("tf.estimator", "tf.compat.v1.estimator", "tf.keras.estimator", f"{IMPORTED_V1}.estimator")
TENSORFLOW_1 = (
    "tf.placeholder",
    "tf.Session",
    "tf.app.flags",
    "tf.train.Server",
    "tf.train.GradientDescentOptimizer",
    "tf.layers",
)
CONTRIB = ("tf.contrib", "__import__('tensorflow.contrib.slim')", f"{IMPORTED_V1}.contrib")

PROGRAM = """
import json, sys
import keras, tensorflow as tf

def model():
    made = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    made.build((None, 3))
    return made

X, Y = tf.zeros((4, 3)), tf.zeros((4, 1))

def compiled(**args):
    made = model()
    made.compile(optimizer="sgd", loss="mse", **args)
    return made

messages = {}
for text in json.loads(sys.argv[1]):
    try:
        eval(text)
    except Exception as error:
        messages[text] = f"{type(error).__name__}: {error}"
print(json.dumps(messages))
"""


@pytest.mark.full
def test_the_errors_of_the_installed_tensorflow_are_recognized(tmp_path: Path) -> None:
    expected = {
        **dict.fromkeys(KERAS_2, "TF_USE_LEGACY_KERAS"),
        **dict.fromkeys(ESTIMATOR, "tensorflow/tensorflow:2.15.0"),
        **dict.fromkeys(TENSORFLOW_1, "import tensorflow.compat.v1 as tf"),
        **dict.fromkeys(CONTRIB, "tf.contrib"),
    }
    command = [sys.executable, "-c", PROGRAM, json.dumps(list(expected))]
    printed = subprocess.run(command, cwd=tmp_path, env=ONE_THREAD, check=True, stdout=subprocess.PIPE).stdout
    messages = json.loads(printed.splitlines()[-1])
    assert set(messages) == set(expected), "each of them is an error"
    remedies = {text: exit_remedy(failed_task(), message.splitlines()) for text, message in messages.items()}
    assert {text: messages[text] for text, remedy in remedies.items() if expected[text] not in remedy} == {}


FITS = """
import json, os
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile(tf.keras.optimizers.legacy.SGD(lr=0.1), "mse")
data = tf.data.Dataset.from_tensor_slices(([[1.0]] * 8, [[2.0]] * 8)).batch(4).repeat()
model.fit(data, steps_per_epoch=20, epochs=1, verbose=0)
slope, intercept = model.get_weights()
print(tf.keras.__name__, "predicts", round(float(slope[0][0] + intercept[0]), 2))
"""


@pytest.mark.full
def test_a_program_for_keras_2_runs_with_its_package_and_variable(cluster: Standing) -> None:
    version = ".".join(__import__("tensorflow").__version__.split(".")[:2])
    environment = {**ONE_THREAD, "TF_USE_LEGACY_KERAS": "1"}
    cluster.up(
        FITS, workers=2, requirements=[f"tf_keras=={version}.*"], env=environment, command=["python", "program.py"]
    )
    cluster.until_state("succeeded")
    assert cluster.output("worker-0").decode().strip().endswith("predicts 2.0")
    assert cluster.output("worker-0").decode().startswith("tf_keras.")
