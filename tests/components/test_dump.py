"""What `tfdeploy dump` prints of real tasks, of which one reads a file that has no end, and another is stopped."""

import json
import os
import signal
from pathlib import Path

from tests.components.conftest import Standing
from tests.components.registered import verbs_of
from tests.waiting import until

PLANTED = """
import faulthandler, os, signal, socket, time
from steps import begin, hostname, wait_for

faulthandler.register(signal.SIGUSR2, open(os.environ["TFDEPLOY_STACKS"], "w"))
host, port = os.environ["TFDEPLOY_PS_HOSTS"].split(":")


def load():
    os.read(os.open("part-3", os.O_RDWR), 1)


if hostname == "ps-0":
    server = socket.create_server((host, int(port)))
    begin()
    peer = server.accept()[0]
    while True:
        peer.sendall(b"x" * 10000)
        time.sleep(0.01)
print("step 100", flush=True)
if hostname == "worker-0":
    while True:
        try:
            peer = socket.create_connection((host, int(port)))
            break
        except OSError:
            time.sleep(0.1)
    begin()
    while peer.recv(1 << 16):
        pass
os.mkfifo("part-3")
begin()
load()
"""


def test_a_task_that_hangs_and_one_that_is_stopped_are_seen_and_continue(cluster: Standing) -> None:
    cluster.up(PLANTED, ps=1, workers=3)
    cluster.until_running("ps-0", "worker-0", "worker-1", "worker-2")
    verbs, stopped = verbs_of(cluster), cluster.started("worker-2")[0]

    def waits() -> bool:
        return b"in read() of part-3 (program.py:10 in load)" in verbs.call("dump")[1]

    until(waits, "worker-1 reads")
    code, said, beside = verbs.call("dump", "worker-1")
    text = said.decode()
    assert (code, beside) == (0, "")
    assert "Nothing is found that holds the training up." in text
    assert "    program.py:10 in load\n    program.py:33 in <module>" in text
    assert "worker-0" not in text

    os.kill(stopped, signal.SIGSTOP)
    until(lambda: state_of(stopped) == "T", "worker-2 is stopped")
    code, said, _ = verbs.call("dump", "--json")
    document = json.loads(said)
    (finding,) = document["findings"]
    assert (code, finding["about"]) == (1, "worker-2")
    assert f"process {stopped} (python" in finding["text"]
    assert finding["remedy"] == f"`tfdeploy exec worker-2 -- kill -CONT {stopped}` continues it."
    assert [task["hostname"] for task in document["tasks"]] == ["ps-0", "worker-0", "worker-1", "worker-2"]
    assert [task["progress"]["step"] for task in document["tasks"]] == [None, 100.0, 100.0, 100.0]
    rates = {(item["hostname"], item["peer"]): item["sent"] for item in document["traffic"]}
    assert rates["ps-0", "worker-0"] > 10_000
    assert rates["worker-0", "ps-0"] == 0

    os.kill(stopped, signal.SIGCONT)
    until(lambda: state_of(stopped) == "S", "worker-2 continues")
    assert [len(cluster.started(f"worker-{index}")) for index in range(3)] == [1, 1, 1]


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
