"""A softmax on several workers: each trains on its share of the digits, and all have the same model."""

import argparse
import os
from pathlib import Path

import numpy as np
import tensorflow as tf

RATE = 0.5


def main() -> None:
    """Train; worker 0 prints the result."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--data", default="mnist.npz")
    flags.add_argument("--steps", type=int, default=200)
    args, _ = flags.parse_known_args()

    # It reads TF_CONFIG, and waits for the others.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    mine, workers = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
    with np.load(Path(os.environ["TFDEPLOY_DATA_DIR"], args.data)) as data:
        digits = {name: data[name] for name in data.files}
    images, labels = digits["x_train"][mine::workers], digits["y_train"][mine::workers]
    images, labels = tf.constant(pixels(images)), tf.constant(labels, tf.int32)
    with strategy.scope():
        # Each adds its own step to the variables: their mean is what happens.
        mean = tf.VariableAggregation.MEAN
        weights = tf.Variable(tf.zeros([784, 10]), aggregation=mean)
        bias = tf.Variable(tf.zeros([10]), aggregation=mean)

    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, images @ weights + bias)
            loss = tf.reduce_mean(losses)
        for variable, slope in zip((weights, bias), tape.gradient(loss, (weights, bias)), strict=True):
            variable.assign_sub(RATE * slope)
        return loss

    everywhere = tf.function(lambda: strategy.run(step))
    for number in range(1, args.steps + 1):
        loss = everywhere()
        if number % 50 == 0:
            print(f"step {number} of {args.steps}: loss {float(loss):.4f}")
    if mine == 0:
        guesses = np.argmax(pixels(digits["x_test"]) @ weights.numpy() + bias.numpy(), axis=1)
        print(f"MNIST accuracy: {np.mean(guesses == digits['y_test']):.4f}")


def pixels(images: np.ndarray) -> np.ndarray:
    """A row of numbers from 0 to 1 for each digit."""
    return images.reshape(len(images), -1).astype(np.float32) / 255


if __name__ == "__main__":
    main()
