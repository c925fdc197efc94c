"""MNIST in one graph: the weights on the parameter servers, steps on each worker, each driven by a thread of this client's."""

import os
import sys
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np

import ingraph

BATCH = 100
STEPS = int(os.environ.get("STEPS", "600"))
HERE = str(Path(__file__).with_name("data"))


class Batches:
    """Batches of digits for several threads."""

    def __init__(self, images: Any, labels: Any) -> None:
        self.images, self.labels = images, labels
        self.chosen = np.random.default_rng(1)
        self.lock = Lock()

    def next(self) -> tuple[Any, Any]:
        with self.lock:
            rows = self.chosen.integers(len(self.images), size=BATCH)
        return self.images[rows], self.labels[rows]


def digits() -> tuple[Batches, tuple[Any, Any]]:
    """What to train with, and what is held out."""
    with np.load(Path(os.environ.get("TFDEPLOY_DATA_DIR") or HERE) / "mnist.npz") as arrays:
        images = {name: arrays[f"x_{name}"].reshape(-1, 784) / np.float32(255) for name in ("train", "test")}
        return Batches(images["train"], arrays["y_train"]), (images["test"], arrays["y_test"])


def mnist(targets: ingraph.Targets) -> None:
    import tensorflow.compat.v1 as tf

    batches, held_out = digits()
    workers = [name for name in targets if name.startswith("worker-")]
    servers = sum(name.startswith("ps-") for name in targets)
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=servers)):
            images = tf.placeholder(tf.float32, [None, 784])
            labels = tf.placeholder(tf.int64, [None])
            weights = tf.get_variable("weights", [784, 10], initializer=tf.zeros_initializer())
            biases = tf.get_variable("biases", [10], initializer=tf.zeros_initializer())
            global_step = tf.train.get_or_create_global_step()
        steps = {}
        for worker in workers:
            with tf.device(f"/job:worker/task:{worker.partition('-')[2]}"):
                scores = tf.matmul(images, weights) + biases
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
                descent = tf.train.GradientDescentOptimizer(0.5)
                steps[worker] = descent.minimize(tf.reduce_mean(losses), global_step=global_step)
        with tf.device("/job:worker/task:0"):
            right = tf.equal(tf.argmax(tf.matmul(images, weights) + biases, 1), labels)
            accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        start = tf.global_variables_initializer()
    graph.finalize()

    coordinator = tf.train.Coordinator()
    done = dict.fromkeys(workers, 0)

    def train(worker: str) -> None:
        with coordinator.stop_on_exception(), ingraph.session(targets[worker], graph) as session:
            step = 0
            while not coordinator.should_stop() and step < STEPS:
                chosen, labels_of_batch = batches.next()
                _, step = session.run([steps[worker], global_step], {images: chosen, labels: labels_of_batch})
                done[worker] += 1

    with ingraph.session(targets["worker-0"], graph) as session:
        session.run(start)
        threads = [Thread(target=train, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        coordinator.join(threads)
        for worker in workers:
            print(f"{worker} did {done[worker]} steps")
        print(f"accuracy: {session.run(accuracy, {images: held_out[0], labels: held_out[1]}):.4f}")


if __name__ == "__main__":
    sys.exit(ingraph.main(mnist))
