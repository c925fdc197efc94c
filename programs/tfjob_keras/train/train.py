"""MNIST with Keras, tf_config by `TF_CONFIG` alone: one program for every replica, under each of three strategies.

Keras 3's `fit` works with neither of the two that span tasks, so the step and its loop are written out here.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read by TensorFlow once, when it is imported

import keras
import numpy as np
import tensorflow as tf

TRY_AGAIN = 75
"""The exit code that asks to be started again."""

LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)

Digits = tuple[Any, Any]
Steps = Callable[[int], float]
"""Does so many steps, and gives the loss of the last one."""


def log(text: str) -> None:
    print(text, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--strategy", choices=["alone", "multi_worker", "parameter_server"], default="alone")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--save_steps", type=int, default=50)
    return parser.parse_known_args()[0]  # the four flags are for programs that do not read TF_CONFIG


def digits(part: str) -> Digits:
    with np.load(Path(os.environ["TFDEPLOY_DATA_DIR"], "mnist.npz")) as arrays:
        return arrays[f"x_{part}"].astype("float32") / 255, arrays[f"y_{part}"].astype("int64")


def batches(size: int) -> tf.data.Dataset:
    """Without end, and in another order in each task."""
    images, labels = digits("train")
    return tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(labels)).repeat().batch(size)


def network() -> keras.Model:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28)),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


class Training:
    """What is trained, and where it is saved. Made in the scope of a strategy."""

    def __init__(self, strategy: tf.distribute.Strategy, folder: Path, rate: float) -> None:
        self.strategy, self.rate = strategy, rate
        with strategy.scope():
            self.model = network()
            self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.weights = [variable.value for variable in self.model.trainable_variables]
        checkpoint = tf.train.Checkpoint(step=self.step, weights=self.weights)
        # Written by this task: the ps need no folder that they share.
        options = tf.train.CheckpointOptions(experimental_io_device="/job:chief")
        self.options = options if isinstance(strategy, tf.distribute.ParameterServerStrategy) else None
        self.manager = tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=3)
        if self.manager.latest_checkpoint:
            checkpoint.restore(self.manager.latest_checkpoint, options=self.options)
            log(f"resumed at step {self.step.numpy()}")

    def save(self) -> None:
        self.manager.save(checkpoint_number=int(self.step.numpy()), options=self.options)

    def one_step(self, images: Any, labels: Any) -> Any:
        """Each replica's gradients of one batch; all of them apply the mean."""

        def replica(images: Any, labels: Any) -> tuple[Any, Any]:
            with tf.GradientTape() as tape:
                predictions = self.model(images, training=True)
                loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(labels, predictions))
            return loss, tape.gradient(loss, self.weights)

        loss, gradients = self.strategy.run(replica, args=(images, labels))
        mean = tf.distribute.ReduceOp.MEAN
        means = self.strategy.extended.batch_reduce_to(mean, [*zip(gradients, self.weights, strict=True)])
        for weight, gradient in zip(self.weights, means, strict=True):
            weight.assign_sub(self.rate * gradient)
        self.step.assign_add(1)
        return self.strategy.reduce(mean, loss, axis=None)


def together(training: Training, size: int) -> Steps:
    """Every replica does each step: alone, or with the others of its kind."""
    dataset = training.strategy.distribute_datasets_from_function(lambda _: batches(size))
    iterator: Iterator[Digits] = iter(dataset)
    step = tf.function(training.one_step)
    return lambda count: float([step(*next(iterator)) for _ in range(count)][-1])


def dealt_out(training: Training, size: int) -> Steps:
    """The chief deals steps out; whichever worker is free does the next. A step of a lost worker goes to another one."""
    coordinator = tf.distribute.coordinator.ClusterCoordinator(training.strategy)
    iterator = iter(coordinator.create_per_worker_dataset(lambda: batches(size)))
    step = tf.function(lambda source: training.one_step(*next(source)))

    def steps(count: int) -> float:
        results = [coordinator.schedule(step, args=(iterator,)) for _ in range(count)]
        coordinator.join()
        return float(results[-1].fetch())

    return steps


def export(training: Training, train_dir: Path) -> None:
    """The trained model as a SavedModel in export/STEP, which is never half a model; and how good it is."""
    trained = network()
    trained.set_weights([weight.numpy() for weight in training.weights])
    with tempfile.TemporaryDirectory(prefix="export-", dir=train_dir) as scratch:
        trained.export(Path(scratch, "fresh"), verbose=False)
        target = train_dir / "export" / str(training.step.numpy())
        target.parent.mkdir(exist_ok=True)
        if not target.exists():
            Path(scratch, "fresh").rename(target)
    log(f"exported {target}")
    log(f"accuracy: {accuracy(trained):.4f}")


def accuracy(model: keras.Model) -> float:
    images, labels = digits("test")
    return float(np.mean(np.argmax(model(images), axis=1) == labels))


def evaluate(folder: Path, steps: int) -> None:
    """The evaluator: not in the cluster, it looks at each checkpoint until that of the last step."""
    model, step = network(), tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(step=step, weights=[variable.value for variable in model.trainable_variables])
    for path in tf.train.checkpoints_iterator(str(folder), min_interval_secs=1):
        checkpoint.restore(path).expect_partial()
        log(f"step {step.numpy()} evaluated: accuracy {accuracy(model):.4f}")
        if step >= steps:
            return


def train(args: argparse.Namespace, strategy: tf.distribute.Strategy, train_dir: Path, saves: bool) -> None:
    training = Training(strategy, train_dir / "checkpoints", args.learning_rate)
    deal = dealt_out if args.strategy == "parameter_server" else together
    steps = deal(training, args.batch_size)
    while training.step < args.steps:
        began = time.monotonic()
        loss = steps(min(args.save_steps, args.steps - int(training.step.numpy())))
        log(f"step {training.step.numpy()} loss {loss:.4f} ({time.monotonic() - began:.1f} s)")
        if saves:
            training.save()
    if saves:
        export(training, train_dir)


def main() -> None:
    alone = {
        "cluster": {"chief": ["localhost"]},
        "task": {"type": "chief", "index": 0},
    }  # a TFJob of one replica has no TF_CONFIG
    args, tf_config = arguments(), json.loads(os.environ.get("TF_CONFIG") or json.dumps(alone))
    role, index = tf_config["task"]["type"], tf_config["task"]["index"]
    replicas = {name: len(hosts) for name, hosts in tf_config["cluster"].items()}
    log(f"{role} {index} of {replicas}, strategy {args.strategy}")
    tf.get_logger().setLevel("ERROR")
    train_dir = Path(os.environ["TFDEPLOY_TRAIN_DIR"])
    train_dir.mkdir(parents=True, exist_ok=True)
    if role == "evaluator":
        evaluate(train_dir / "checkpoints", args.steps)
        return
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if args.strategy == "parameter_server" and role in ("ps", "worker"):
        tf.distribute.Server(resolver.cluster_spec(), job_name=role, task_index=index, protocol="grpc").join()
    makers = {
        "alone": tf.distribute.get_strategy,
        "multi_worker": lambda: tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver),
        "parameter_server": lambda: tf.distribute.ParameterServerStrategy(resolver),
    }
    try:
        train(args, makers[args.strategy](), train_dir, saves=role in ("chief", "master"))
    except LOST as lost:
        log(f"{type(lost).__name__}: a peer is lost; this task restarts from the last checkpoint")
        os._exit(TRY_AGAIN)  # the threads that wait for the peer never end


if __name__ == "__main__":
    main()
