"""MNIST between-graph: the ps hold the variables, each worker trains with its own graph, worker 0 is the chief.

Every task runs this program; --job_name, --task_index, --ps_hosts and --worker_hosts identify the task. Without
--job_name it trains alone. Checkpoints are sharded: each ps writes what it holds, so all tasks must share --train_dir.
"""

import io
import os
import signal
import socket
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read by TensorFlow once, when it is imported

import numpy as np
import tensorflow.compat.v1 as tf

flags = tf.flags
flags.DEFINE_enum("job_name", None, ["ps", "worker"], "what this task is; nothing for training alone")
flags.DEFINE_integer("task_index", 0, "which of its job; worker 0 is the chief")
flags.DEFINE_list("ps_hosts", [], "host:port of each ps, separated by commas")
flags.DEFINE_list("worker_hosts", [], "host:port of each worker, likewise")
flags.DEFINE_string("data_dir", None, "where mnist.npz is: a folder or a URL", required=True)
flags.DEFINE_string("train_dir", None, "where checkpoints go: a folder or a URL", required=True)
flags.DEFINE_integer("train_steps", 300, "steps of all workers together")
flags.DEFINE_integer("hidden_units", 128, "width of the hidden layer")
flags.DEFINE_integer("batch_size", 100, "digits in a step")
flags.DEFINE_float("learning_rate", 0.002, "of the Adam optimizer")
FLAGS = flags.FLAGS

WITH_TENSORFLOW_IO = ("hdfs://", "viewfs://")
START_WAIT = 120.0


def log(text: str) -> None:
    print(text, flush=True)


def read_digits() -> dict[str, Any]:
    """Keras' mnist.npz: x_train, y_train, and x_test, y_test, which are held out."""
    with tf.gfile.GFile(f"{FLAGS.data_dir}/mnist.npz", "rb") as file, np.load(io.BytesIO(file.read())) as arrays:
        return {name: arrays[name] for name in ("x_train", "y_train", "x_test", "y_test")}


def layer(name: str, inputs: Any, units: int) -> Any:
    with tf.variable_scope(name):
        start = tf.glorot_uniform_initializer(seed=1)
        weights = tf.get_variable("weights", [inputs.shape[1], units], initializer=start)
        return tf.matmul(inputs, weights) + tf.get_variable("biases", [units], initializer=tf.zeros_initializer())


def build() -> tuple[Any, Any, Any]:
    """The network with one hidden layer: images, labels, loss."""
    images = tf.placeholder(tf.uint8, [None, 28, 28])
    labels = tf.placeholder(tf.uint8, [None])
    pixels = tf.reshape(tf.cast(images, tf.float32) / 255, [-1, 28 * 28])
    scores = layer("digits", tf.nn.relu(layer("hidden", pixels, FLAGS.hidden_units)), 10)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(labels, tf.int64), logits=scores)
    return images, labels, tf.reduce_mean(losses)


def wait_for_workers() -> None:
    """Until every worker listens, so that the chief does not do all steps alone; later ones join in."""
    missing = list(FLAGS.worker_hosts)
    deadline = time.monotonic() + START_WAIT
    while missing and time.monotonic() < deadline:
        host, _, port = missing[0].rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            missing.pop(0)
        except OSError:
            time.sleep(0.1)


class AfterTheChief(tf.train.SessionCreator):  # type: ignore[misc]
    """A session as soon as the chief has made the variables; TensorFlow's own looks only every 30 s."""

    def __init__(self, scaffold: Any, target: str, config: Any) -> None:
        self.scaffold, self.target, self.config = scaffold, target, config

    def create_session(self) -> Any:
        self.scaffold.finalize()
        ready = {"ready_op": self.scaffold.ready_op, "ready_for_local_init_op": self.scaffold.ready_for_local_init_op}
        manager = tf.train.SessionManager(self.scaffold.local_init_op, recovery_wait_secs=0.2, **ready)
        return manager.wait_for_session(self.target, self.config)


def open_session(target: str, is_chief: bool) -> Any:
    # Without the filter a session waits for all workers, also for one that has finished.
    filters = ["/job:ps", f"/job:worker/task:{FLAGS.task_index}"] if FLAGS.job_name else []
    config = tf.ConfigProto(device_filters=filters)
    scaffold = tf.train.Scaffold(saver=tf.train.Saver(sharded=True), summary_op=tf.summary.merge_all())
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps)]
    if not is_chief:
        return tf.train.MonitoredSession(AfterTheChief(scaffold, target, config), hooks)
    return tf.train.MonitoredTrainingSession(
        target,
        checkpoint_dir=FLAGS.train_dir,
        scaffold=scaffold,
        hooks=hooks,
        config=config,
        save_checkpoint_steps=100,
        save_summaries_steps=10,
        save_summaries_secs=None,
        log_step_count_steps=None,
    )


def train(place: Any, target: str, is_chief: bool, data: dict[str, Any]) -> None:
    """Steps, together with the other workers, until there are enough."""
    with tf.device(place):
        images, labels, loss = build()
        global_step = tf.train.get_or_create_global_step()
        train_op = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss, global_step=global_step)
        tf.summary.scalar("loss", loss)
    with tf.control_dependencies([train_op]):
        new_step = global_step.read_value()
    for variable in [*tf.trainable_variables(), global_step]:
        log(f"variable {variable.op.name} on {variable.device or 'this machine'}")
    random = np.random.default_rng(FLAGS.task_index)
    done = 0
    with open_session(target, is_chief) as session:
        while not session.should_stop():
            chosen = random.integers(len(data["y_train"]), size=FLAGS.batch_size)
            batch = {images: data["x_train"][chosen], labels: data["y_train"][chosen]}
            step, value = session.run([new_step, loss], batch)
            log(f"step {step} loss {value:.4f}")
            done += 1
    log(f"worker-{FLAGS.task_index} did {done} steps")


def final_loss(data: dict[str, Any]) -> float:
    """The loss on the digits held out, of the last checkpoint; in this process alone, for the others may be gone."""
    with tf.Graph().as_default(), tf.Session() as session:
        images, labels, loss = build()
        tf.train.Saver(sharded=True).restore(session, tf.train.latest_checkpoint(FLAGS.train_dir))
        return float(session.run(loss, {images: data["x_test"], labels: data["y_test"]}))


def work(place: Any, target: str) -> None:
    is_chief = FLAGS.task_index == 0
    data = read_digits()
    if is_chief:
        wait_for_workers()
    train(place, target, is_chief, data)
    if is_chief:
        log(f"final loss {final_loss(data):.4f}")


def run() -> None:
    if not FLAGS.job_name:
        work(None, "")
        return
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # join never returns to Python
        server.join()
    mine = f"/job:worker/task:{FLAGS.task_index}"
    work(tf.train.replica_device_setter(worker_device=mine, cluster=cluster), server.target)


def main(_: list[str]) -> None:
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    further = any(folder.startswith(WITH_TENSORFLOW_IO) for folder in (FLAGS.data_dir, FLAGS.train_dir))
    if further:
        import tensorflow_io  # type: ignore[import-not-found]  # noqa: F401
    run()
    if further:
        os._exit(0)  # tensorflow-io was seen to abort at a program's end


if __name__ == "__main__":
    tf.app.run(main)
