"""Tasks that only serve, with the real TensorFlow: a client outside drives them."""

import json
import os
import subprocess
import sys

from tests.components.conftest import Standing
from tests.waiting import until

ADDS_ON_THE_WORKERS = """
import json, sys
import tensorflow as tf

cluster = json.loads(sys.argv[1])
with tf.Graph().as_default():
    with tf.device("/job:ps/task:0"):
        two = tf.compat.v1.get_variable("two", initializer=2)
    with tf.device("/job:worker/task:0"):
        total = two + 3
    config = tf.compat.v1.ConfigProto(log_device_placement=False)
    with tf.compat.v1.Session("grpc://" + cluster["worker-0"], config=config) as session:
        session.run(two.initializer)
        print("devices:", sorted({device.name.partition("/replica")[0] for device in session.list_devices()}))
        print("total:", session.run(total))
"""


def test_a_client_computes_on_tasks_that_serve(cluster: Standing) -> None:
    cluster.up(standalone_servers=True, ps=1, workers=1)
    until(lambda: str(cluster.look().logs).count("serving at grpc://") == 2, "both serve")
    client = [sys.executable, "-c", ADDS_ON_THE_WORKERS, json.dumps(cluster.look().endpoints)]
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(client, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.stdout.splitlines() == ["devices: ['/job:ps', '/job:worker']", "total: 5"], done.stderr
    seen = cluster.look()
    assert (seen.state, seen.decided) == ("running", False)
    assert {row["status"] for row in seen.tasks} == {"running"}
