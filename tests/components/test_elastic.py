"""Workers of an elastic cluster are added, removed and killed, and the step counter of the parameter server goes on."""

import os
import random
import signal
from contextlib import suppress
from functools import partial

from tests.components.conftest import Standing
from tests.waiting import until
from tfdeploy.agent.model.events import ADDRESS_CHANGED, TASKS_CHANGED

COUNTS = """
import os, socket, socketserver, threading, time
from steps import begin, here, hostname

begin()
job, index = os.environ["TFDEPLOY_JOB_NAME"], int(os.environ["TFDEPLOY_TASK_INDEX"])
ps, = os.environ["TFDEPLOY_PS_HOSTS"].split(",")
workers = os.environ["TFDEPLOY_WORKER_HOSTS"].split(",")
print("knows", len(workers), "workers", flush=True)

step, lock = 0, threading.Lock()

class Step(socketserver.StreamRequestHandler):
    def handle(self):
        global step
        while self.rfile.readline():
            with lock:
                step += 1
                self.wfile.write(f"{step}\\n".encode())

def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

server = Server(address(ps if job == "ps" else workers[index]), Step)
if job == "ps":
    server.serve_forever()

def connect():
    while True:
        try:
            return socket.create_connection(address(ps))
        except ConnectionRefusedError:
            time.sleep(0.02)

with connect() as connection:
    stream = connection.makefile("rw")
    while not (here / "gate").exists():
        stream.write("step\\n")
        stream.flush()
        with (here / f"steps-{hostname}").open("a") as steps:
            steps.write(stream.readline())
        time.sleep(0.02)
"""
"""The ps counts the steps of all workers. Each task listens on its own address, as TensorFlow's servers do."""

ELASTIC = {"ps": 1, "elastic": {"max": 4}}


def steps(cluster: Standing, hostname: str) -> list[int]:
    """The steps that a worker has done; the last line may be unfinished."""
    path = cluster.folder / f"steps-{hostname}"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [int(line) for line in lines if line.endswith("\n")]


def has_done(cluster: Standing, hostname: str, step: int) -> bool:
    """Whether a worker has done a later step than this one."""
    return max([0, *steps(cluster, hostname)]) > step


def until_all_step(cluster: Standing, workers: int) -> None:
    """Wait until each of these workers has done a step beyond all that were done before."""
    names = [f"worker-{index}" for index in range(workers)]
    done = max([0, *(step for index in range(4) for step in steps(cluster, f"worker-{index}"))])
    for name in names:
        until(partial(has_done, cluster, name, done), f"a further step of {name}", seen=lambda: cluster.look().status)


def resize(cluster: Standing, workers: int) -> None:
    """What `pulumi up` does with another number of workers."""
    cluster.declare(COUNTS, workers=workers, **ELASTIC)
    cluster.sweep()
    cluster.stand()


def assert_never_went_back(cluster: Standing) -> None:
    """The ps and worker 0 were started once, and the step of no worker ever went back."""
    assert [len(cluster.started(name)) for name in ("ps-0", "worker-0")] == [1, 1]
    for index in range(4):
        done = steps(cluster, f"worker-{index}")
        assert done == sorted(set(done))
    kinds = [kind for kind, _ in cluster.happened()]
    assert ADDRESS_CHANGED not in kinds
    assert TASKS_CHANGED not in kinds


def test_workers_are_killed_at_random_while_their_number_changes(cluster: Standing) -> None:
    cluster.up(COUNTS, workers=2, **ELASTIC)
    until_all_step(cluster, 2)
    draw = random.Random(7)
    workers = 2
    for _ in range(10):
        fault = draw.choice(["launcher", "program", "resize"])
        if fault == "resize" or workers == 1:
            workers = draw.randint(1, 4)
            resize(cluster, workers)
        else:
            name = f"worker-{draw.randrange(1, workers)}"
            cluster.until_started(name)
            launcher = until(partial(cluster.pid, name), f"a launcher of {name}")  # 0 while there is none
            with suppress(ProcessLookupError):  # the program of an earlier attempt
                os.kill(launcher if fault == "launcher" else cluster.started(name)[-1], signal.SIGKILL)
        until_all_step(cluster, 1)
    resize(cluster, 3)
    cluster.until_running("worker-0")
    assert_never_went_back(cluster)
    cluster.open()
    cluster.until_state("succeeded")


def test_a_worker_that_is_lost_for_good_neither_stops_nor_fails_the_run(cluster: Standing) -> None:
    cluster.up(COUNTS, workers=3, restart={"maximum": 1, "backoff": "0"}, worker_timeout="1s", **ELASTIC)
    until_all_step(cluster, 3)
    for attempt in (1, 2):
        os.kill(cluster.until_started("worker-1", attempt), signal.SIGKILL)
    cluster.until_status("worker-1", "killed")
    cluster.supervisor().remove("worker-2", 30.0)
    cluster.until_status("worker-2", "interrupted")
    until_all_step(cluster, 1)
    assert cluster.look().state == "running"
    cluster.open()
    assert cluster.until_state("succeeded").reason == "worker-0 succeeded"
    assert_never_went_back(cluster)
