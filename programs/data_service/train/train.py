"""Learns y = 3x + 1 from numbers of which each takes a while to prepare; tf.data service prepares them, where the cluster has it.

ELEMENTS, MILLISECONDS and EPOCHS in the environment set how many there are, how long each takes, and how often all are read.
"""

import collections
import os
import time

import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing

ELEMENTS = int(os.environ.get("ELEMENTS", "300"))
MILLISECONDS = float(os.environ.get("MILLISECONDS", "10"))
EPOCHS = int(os.environ.get("EPOCHS", "3"))


def numbers() -> tf.data.Dataset:
    """The dataset; the sleep is in the place of decoding and augmentation."""
    return tf.data.Dataset.range(ELEMENTS).apply(testing.sleep(int(1000 * MILLISECONDS)))


def from_service(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset as tf.data service prepares it; unchanged in a cluster without the service."""
    service = os.environ.get("TFDEPLOY_DATA_SERVICE")
    if not service:
        return dataset
    return dataset.apply(tf.data.experimental.service.distribute("distributed_epoch", service))


def main() -> None:
    """Train, and print for each epoch how many elements it had."""
    weights = tf.Variable([0.0, 0.0])
    for epoch in range(EPOCHS):
        began = time.monotonic()
        seen: collections.Counter[int] = collections.Counter()
        for step, batch in enumerate(from_service(numbers()).batch(10).prefetch(1)):
            x = tf.cast(batch, tf.float32) / ELEMENTS
            error = weights[0] * x + weights[1] - (3 * x + 1)
            weights.assign_sub(0.5 * tf.stack([tf.reduce_mean(error * x), tf.reduce_mean(error)]))
            seen.update(batch.numpy().tolist())
            if step % 10 == 0:
                print(f"epoch {epoch} step {step}", flush=True)
        total, seconds = sum(seen.values()), time.monotonic() - began
        print(f"epoch {epoch}: {total} elements, {len(seen)} different, {seconds:.1f} s", flush=True)
    print("weights:", *(f"{weight:.2f}" for weight in weights.numpy()), flush=True)


main()
