"""Services start before the training that needs them and end with the run; tasks that only serve are driven from outside."""

import json
import os
import signal
import subprocess
import sys

from tests.components.conftest import Standing
from tests.waiting import until

STORE = """
import json, os, pathlib, socketserver, sys
from steps import begin, here, wait_for

number = begin()
wait_for("listen")
values = {}

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            name, _, value = line.decode().strip().partition("=")
            if value:
                values[name] = value
            self.wfile.write((values.get(name, "") + "\\n").encode())

(here / "environment").write_text(json.dumps({**os.environ, "arguments": sys.argv[1:]}))
print("store", number, "has started", flush=True)
socketserver.ThreadingTCPServer.allow_reuse_address = True
with socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Handler) as server:
    server.serve_forever()
"""

TRAINS = """
import json, os, pathlib, socket, sys, time
from steps import begin, here, hostname, wait_for

begin()

def ask(text):
    host, _, port = os.environ["TFDEPLOY_STORE_HOSTS"].partition(":")
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rw") as stream:
        stream.write(text + "\\n")
        stream.flush()
        return stream.readline().strip()

assert ask(hostname + "=1") == "1", "at the first attempt"
print(json.dumps({"arguments": sys.argv[1:], "cluster": json.loads(os.environ["TF_CONFIG"])["cluster"]}), flush=True)
wait_for("killed")
while True:
    try:
        assert ask(hostname) == "", "another store"
        break
    except OSError:
        time.sleep(0.05)
wait_for("gate")
"""


def write_store(cluster: Standing) -> None:
    """The program of the service, beside that of the training."""
    code = cluster.folder / "code"
    code.mkdir()
    (code / "store.py").write_text(STORE)


def store(**settings: object) -> dict[str, dict[str, object]]:
    """The argument `services` with a store."""
    return {"store": {"command": [sys.executable, "store.py", "{port}", "{worker_hosts}"], **settings}}


def test_a_service_is_there_before_the_training_and_until_its_end(cluster: Standing) -> None:
    write_store(cluster)
    command = [sys.executable, "program.py", "{store_hosts}"]
    restart = {"maximum": 3, "backoff": "0"}
    cluster.up(TRAINS, command=command, ps=1, workers=2, restart=restart, services=store(), success="all-workers")
    cluster.until_started("store-0", 1)
    cluster.until_status("worker-0", "waiting for store-0")
    assert not cluster.started("worker-0")
    cluster.open("listen")
    until(lambda: all(map(cluster.output, ("ps-0", "worker-0", "worker-1"))), "all have asked the store")

    book = cluster.job().address_book
    environment = json.loads((cluster.folder / "environment").read_text())
    assert environment["arguments"] == [book["store-0"].rpartition(":")[2], f"{book['worker-0']},{book['worker-1']}"]
    assert "TF_CONFIG" not in environment
    assert environment["TFDEPLOY_STORE_HOSTS"] == book["store-0"]
    told = json.loads(cluster.output("worker-1"))
    assert told["arguments"][0] == book["store-0"]
    assert told["cluster"] == {"ps": [book["ps-0"]], "worker": [book["worker-0"], book["worker-1"]]}

    os.kill(cluster.started("store-0")[0], signal.SIGKILL)
    cluster.open("killed")
    cluster.until_started("store-0", 2)
    cluster.open("gate")
    report = cluster.until_state("succeeded")
    assert {row["hostname"]: row["status"] for row in report.tasks}["store-0"].startswith("stopped")
    assert cluster.output("store-0") == b"store 1 has started\nstore 2 has started\n"
    assert [len(cluster.started(name)) for name in ("ps-0", "worker-0", "worker-1")] == [1, 1, 1]


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
