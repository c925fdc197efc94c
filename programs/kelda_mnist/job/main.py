"""Softmax regression on MNIST: a parameter server holds the variables, each worker trains with its own graph."""

import argparse
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read by TensorFlow once, when it is imported

import numpy as np
import tensorflow.compat.v1 as tf
from einops import rearrange

STEPS = 300
BATCH = 100


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job_name", choices=["ps", "worker"], required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    return parser.parse_args()


def digits() -> tuple[Any, Any, Any, Any]:
    """Training pixels and labels, then those held out: from the data's folder, else fetched over HTTPS."""
    if folder := os.environ.get("TFDEPLOY_DATA_DIR"):
        with np.load(Path(folder, "mnist.npz")) as file:
            arrays = [file[name] for name in ("x_train", "y_train", "x_test", "y_test")]
    else:
        (x_train, y_train), (x_test, y_test) = tf.keras.datasets.mnist.load_data()
        arrays = [x_train, y_train, x_test, y_test]
    train, test = (rearrange(arrays[at], "digit row column -> digit (row column)") / 255 for at in (0, 2))
    return train, arrays[1], test, arrays[3]


def train(flags: argparse.Namespace, cluster: tf.train.ClusterSpec, server: tf.train.Server) -> None:
    me = f"worker-{flags.task_index}"
    is_chief = flags.task_index == 0
    x_train, y_train, x_test, y_test = digits()
    device = f"/job:worker/task:{flags.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.placeholder(tf.int64, [None])
        weights = tf.get_variable("weights", [784, 10], initializer=tf.zeros_initializer())
        biases = tf.get_variable("biases", [10], initializer=tf.zeros_initializer())
        scores = tf.matmul(x, weights) + biases
        loss = tf.losses.sparse_softmax_cross_entropy(y, scores)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1), y), tf.float32))
        global_step = tf.train.get_or_create_global_step()
        new_step = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step)
        saver = tf.train.Saver()

    supervisor = tf.train.Supervisor(
        is_chief=is_chief,
        logdir=os.environ.get("TFDEPLOY_TRAIN_DIR"),
        global_step=global_step,
        saver=saver,
        summary_op=None,
        recovery_wait_secs=0.5,
        save_model_secs=10,
    )
    # Without the filter a session waits for all workers, also for those that have ended.
    config = tf.ConfigProto(device_filters=["/job:ps", device])
    random = np.random.default_rng(flags.task_index)
    with supervisor.managed_session(server.target, config) as session:
        done, step = 0, int(session.run(global_step))
        while step < STEPS:
            chosen = random.integers(len(x_train), size=BATCH)
            feed = {x: x_train[chosen], y: y_train[chosen]}
            _, step, value = session.run([new_step, global_step, loss], feed)
            done += 1
            if done % 20 == 0:
                print(f"{me}: step {step} loss {value:.4f}", flush=True)
        print(f"{me} did {done} steps", flush=True)
        if is_chief:
            saver.save(session, supervisor.save_path, global_step)
            result = session.run(accuracy, {x: x_test, y: y_test})
            print(f"MNIST accuracy: {result:.4f}", flush=True)


def main() -> None:
    flags = parsed()
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    cluster = tf.train.ClusterSpec({"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=flags.job_name, task_index=flags.task_index)
    if flags.job_name == "ps":
        server.join()
    else:
        train(flags, cluster, server)


if __name__ == "__main__":
    main()
