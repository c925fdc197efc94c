"""Faults of programs for one machine, with the real TensorFlow: the report names them, and what to set."""

import pytest

from tests.components.conftest import Standing
from tests.waiting import until

LATE = """
import os
import tensorflow as tf
from steps import hostname, wait_for

tf1 = tf.compat.v1
tf1.disable_eager_execution()
hosts = {job: os.environ[f"TFDEPLOY_{job.upper()}_HOSTS"].split(",") for job in ("ps", "worker")}
job, index = os.environ["TFDEPLOY_JOB_NAME"], int(os.environ["TFDEPLOY_TASK_INDEX"])
server = tf.distribute.Server(tf.train.ClusterSpec(hosts), job_name=job, task_index=index)
if job == "ps":
    server.join()
wait_for("gate", hostname)
with tf1.device(tf1.train.replica_device_setter(cluster=tf.train.ClusterSpec(hosts))):
    step = tf1.train.get_or_create_global_step()
    more = tf1.assign_add(step, 1)
with tf1.train.MonitoredTrainingSession(server.target, is_chief=index == 0) as session:
    print("step", session.run(more), flush=True)
os._exit(0)
"""
"""Without device filters the session waits until each task of the cluster has responded."""


@pytest.mark.full
def test_a_worker_that_is_late_for_its_peer_is_named(cluster: Standing) -> None:
    cluster.up(LATE, ps=1, workers=2, success="all-workers", stop_grace_period="1s")
    cluster.open("worker-0")
    cluster.until_status("worker-0", "succeeded", 240.0)
    cluster.open("worker-1")
    (found,) = until(lambda: cluster.look().problems, "the wait is seen", 240.0)
    assert found.text.startswith("worker-1 waits for worker-0")
    assert 'device_filters=["/job:ps", "/job:worker/task:1"]' in found.remedy


SAVES = """
import os
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
hosts = {job: os.environ[f"TFDEPLOY_{job.upper()}_HOSTS"].split(",") for job in ("ps", "worker")}
server = tf.distribute.Server(tf.train.ClusterSpec(hosts), job_name=os.environ["TFDEPLOY_JOB_NAME"], task_index=0)
if os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    server.join()
with tf1.device(tf1.train.replica_device_setter(cluster=tf.train.ClusterSpec(hosts))):
    more = tf1.assign_add(tf1.train.get_or_create_global_step(), 1)
with tf1.train.MonitoredTrainingSession(server.target, is_chief=True, checkpoint_dir="logdir") as session:
    session.run(more)
"""
"""The ps writes its part of the checkpoint, into a folder that only the worker has created in its copy of the code."""


@pytest.mark.full
def test_a_checkpoint_in_the_copy_of_the_code_is_named(cluster: Standing) -> None:
    cluster.up(SAVES, ps=1, workers=1, restart={"maximum": 0}, stop_grace_period="1s")
    cluster.until_state("failed", 240.0)
    (found,) = cluster.look().failures
    assert "NotFoundError" in found.lines[0]
    assert "logdir/" in found.remedy
    assert "{train_dir}" in found.remedy
