"""MNIST the classic way: variables on parameter servers, each worker with its own graph.

Every task runs this program; the four flags --job_name, --task_index, --ps_hosts and --worker_hosts
identify the task. Worker 0 is the chief: it creates the variables, saves them, and evaluates.
"""

import os
import signal
import socket
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read by TensorFlow once, when it is imported

import tensorflow.compat.v1 as tf

import digits
import flags
import model
from evaluate import evaluate_and_export, trained_steps

REPORT_STEPS = 100
SUMMARY_STEPS = 10


def log(text: str) -> None:
    print(text, flush=True)


def serve_variables(cluster: tf.train.ClusterSpec, task_index: int) -> None:
    """Job ps: hold variables until somebody ends this process."""
    server = tf.train.Server(cluster, job_name="ps", task_index=task_index)
    # join() never returns to Python, so Python's own handler would delay Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    log(f"ps-{task_index} serves on {server.target}")
    server.join()


def wait_for_workers(addresses: list[str], seconds: float) -> None:
    """Wait until every worker listens, so that the first one does not do all the work alone.

    Workers that are not ready after so many seconds join later.
    """
    deadline = time.monotonic() + seconds
    missing = list(addresses)
    while missing and time.monotonic() < deadline:
        host, _, port = missing[0].rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            missing.pop(0)
        except OSError:
            time.sleep(0.1)
    if missing:
        log(f"started without {', '.join(missing)}, not ready after {seconds:.0f} s")


class PromptWorker(tf.train.SessionCreator):  # type: ignore[misc]
    """Waits until the chief has made or restored the variables.

    TensorFlow's own WorkerSessionCreator does the same, but looks only every 30 s.
    """

    def __init__(self, scaffold: tf.train.Scaffold, target: str, config: tf.ConfigProto) -> None:
        self.scaffold, self.target, self.config = scaffold, target, config

    def create_session(self) -> tf.Session:
        self.scaffold.finalize()
        manager = tf.train.SessionManager(
            local_init_op=self.scaffold.local_init_op,
            ready_op=self.scaffold.ready_op,
            ready_for_local_init_op=self.scaffold.ready_for_local_init_op,
            recovery_wait_secs=0.5,
        )
        return manager.wait_for_session(self.target, self.config)


class StartLine(tf.train.SessionRunHook):  # type: ignore[misc]
    """Prints the step at which this worker starts, also after the loss of a ps."""

    def __init__(self, task: str, resumes: bool, last_step: int) -> None:
        self.task, self.resumes, self.last_step = task, resumes, last_step

    def begin(self) -> None:
        self.step = tf.train.get_global_step()

    def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
        step = int(session.run(self.step))
        log(f"{self.task} {'resumed' if self.resumes else 'started'} at step {step}")
        self.resumes = True
        if step >= self.last_step:
            coord.request_stop()


def open_session(
    args: flags.Flags, train_dir: Path, server: tf.train.Server, resumes: bool
) -> tf.train.MonitoredSession:
    """A session that survives the loss of a ps: the chief restores the last checkpoint."""
    # Without the filter a session waits for all workers, also for those dead or finished.
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{args.task_index}"])
    # On this worker's own device, or each ps writes its part, to a folder that it may not share.
    with tf.device(f"/job:worker/task:{args.task_index}"):
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(), summary_op=tf.summary.merge_all())
    hooks = [
        StartLine(args.task, resumes, args.steps),
        tf.train.StopAtStepHook(last_step=args.steps),
    ]
    if not args.is_chief:
        return tf.train.MonitoredSession(PromptWorker(scaffold, server.target, config), hooks)
    return tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=True,
        checkpoint_dir=str(train_dir),
        scaffold=scaffold,
        hooks=hooks,
        config=config,
        save_checkpoint_steps=args.save_steps,
        save_graph_def=False,
        save_summaries_steps=SUMMARY_STEPS,
        save_summaries_secs=None,
        log_step_count_steps=None,
    )


def train(
    args: flags.Flags,
    cluster: tf.train.ClusterSpec,
    train_dir: Path,
    data: digits.Digits,
    resumes: bool,
) -> None:
    """Job worker: do steps, together with the other workers, until there are enough."""
    on_ps = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{args.task_index}", cluster=cluster)
    with tf.device(on_ps):
        network = model.build(args.hidden_units)
        global_step = tf.train.get_or_create_global_step()
        optimizer = tf.train.AdamOptimizer(args.learning_rate)
        train_op = optimizer.minimize(network.loss, global_step=global_step)
        if args.is_chief:  # of its batches, into train_dir
            tf.summary.scalar("loss", network.loss)
            tf.summary.scalar("accuracy", network.accuracy)
    with tf.control_dependencies([train_op]):
        new_step = global_step.read_value()
    for variable in [*tf.trainable_variables(), global_step]:
        log(f"variable {variable.op.name} on {variable.device}")

    server = tf.train.Server(cluster, job_name="worker", task_index=args.task_index)
    if args.is_chief and args.start_wait and not resumes:
        wait_for_workers(args.worker_hosts, args.start_wait)

    batches = digits.batches(data, args.batch_size, seed=args.task_index)
    done = step = reported = 0
    with open_session(args, train_dir, server, resumes) as session:
        while not session.should_stop():
            images, labels = next(batches)
            feed = {network.images: images, network.labels: labels}
            step, loss = session.run([new_step, network.loss], feed)
            done += 1
            if step // REPORT_STEPS != reported:
                reported = step // REPORT_STEPS
                log(f"step {step} of {args.steps} loss {loss:.4f}")
    log(f"{args.task} did {done} steps, up to step {step}")


def folder_for_training(args: flags.Flags) -> Path:
    if args.train_dir:
        args.train_dir.mkdir(parents=True, exist_ok=True)
        return args.train_dir
    folder = Path(tempfile.mkdtemp(prefix="mnist-"))
    if args.is_chief:
        log(f"no --train_dir: checkpoints go to {folder}, which a restarted task does not read")
    return folder


def work(args: flags.Flags, cluster: tf.train.ClusterSpec) -> None:
    data = digits.load(args.data_dir)
    if args.shuffle_labels:
        data = digits.with_shuffled_labels(data)
    train_dir = folder_for_training(args)
    saved = trained_steps(train_dir)
    if saved is not None and saved >= args.steps:
        log(f"{args.task} did 0 steps: the checkpoint in {train_dir} is of step {saved}")
    else:
        train(args, cluster, train_dir, data, resumes=saved is not None)
    if args.is_chief:
        score = evaluate_and_export(train_dir, args.hidden_units, data)
        log(f"final loss {score.loss:.4f}")
        log(f"MNIST accuracy: {score.accuracy:.4f}")


def main() -> None:
    args = flags.parse()
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    cluster = tf.train.ClusterSpec({"ps": args.ps_hosts, "worker": args.worker_hosts})
    if args.job_name == "ps":
        serve_variables(cluster, args.task_index)
    else:
        work(args, cluster)


if __name__ == "__main__":
    main()
