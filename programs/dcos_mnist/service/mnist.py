"""MNIST with one softmax layer, as a job of DC/OS: all that it knows of its cluster it has from `server`."""

import os
import time
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


class PromptWorker(tf.train.SessionCreator):  # type: ignore[misc]
    """Waits until worker 0 has made the variables; TensorFlow's own looks for it only every 30 s."""

    def __init__(self, target: str, config: tf.ConfigProto) -> None:
        self.target, self.config = target, config

    def create_session(self) -> tf.Session:
        scaffold = tf.train.Scaffold().finalize()
        manager = tf.train.SessionManager(
            local_init_op=scaffold.local_init_op,
            ready_op=scaffold.ready_op,
            ready_for_local_init_op=scaffold.ready_for_local_init_op,
            recovery_wait_secs=0.5,
        )
        return manager.wait_for_session(self.target, self.config)


def network() -> tuple[Any, Any, Any, Any]:
    """Images, labels, loss and accuracy."""
    images = tf.placeholder(tf.uint8, [None, 28, 28])
    labels = tf.placeholder(tf.uint8, [None])
    pixels = tf.reshape(tf.cast(images, tf.float32) / 255, [-1, 784])
    weights = tf.get_variable("weights", [784, 10], initializer=tf.zeros_initializer())
    biases = tf.get_variable("biases", [10], initializer=tf.zeros_initializer())
    scores, expected = tf.matmul(pixels, weights) + biases, tf.cast(labels, tf.int64)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=expected, logits=scores))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1), expected), tf.float32))
    return images, labels, loss, accuracy


def evaluate(log_dir: str, data: Any) -> None:
    """Try the newest checkpoint on digits that it never saw."""
    with tf.Graph().as_default(), tf.Session() as session:
        images, labels, _, accuracy = network()
        tf.train.Saver().restore(session, tf.train.latest_checkpoint(log_dir))
        score = session.run(accuracy, {images: data["x_test"], labels: data["y_test"]})
    print(f"MNIST accuracy: {score:.4f}", flush=True)


def main(server: Any, log_dir: str, context: dict[str, Any]) -> None:
    """
    server: a tf.train.Server, which knows all of the cluster
    log_dir: where checkpoints and summaries go
    context: learning_rate, num_training_steps, save_steps, seconds_per_step
    """
    rate, steps = context.get("learning_rate", 0.5), context.get("num_training_steps", 300)
    index, cluster = server.server_def.task_index, tf.train.ClusterSpec(server.server_def.cluster)
    device = f"/job:worker/task:{index}"
    data = np.load(f"{context.get('data_dir') or os.environ['TFDEPLOY_DATA_DIR']}/mnist.npz")
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        images, labels, loss, _ = network()
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    with tf.control_dependencies([train]):
        now = step.read_value()
    # Without the filter a session waits for all workers, also for those that are done.
    config = tf.ConfigProto(device_filters=["/job:ps", device])
    with tf.device(device):  # else each ps saves its part, to a folder that it may not share
        saver = tf.train.Saver()
    hooks = [tf.train.StopAtStepHook(last_step=steps)]
    saving = {"checkpoint_dir": log_dir, "scaffold": tf.train.Scaffold(saver=saver)}
    saving |= {"save_checkpoint_steps": context.get("save_steps", 50), "save_summaries_steps": None}
    x, y = data["x_train"], data["y_train"]
    random = np.random.default_rng(index)
    session = (
        tf.train.MonitoredTrainingSession(server.target, hooks=hooks, config=config, **saving)
        if index == 0
        else tf.train.MonitoredSession(PromptWorker(server.target, config), hooks)
    )
    with session:
        begun = True
        while not session.should_stop():
            chosen = random.integers(len(y), size=64)
            at, cost = session.run([now, loss], {images: x[chosen], labels: y[chosen]})
            if begun or at % 50 == 0:
                print(f"{'began at ' if begun else ''}step {at} loss {cost:.4f}", flush=True)
            begun = False
            time.sleep(context.get("seconds_per_step", 0))
    if index == 0:
        evaluate(log_dir, data)
