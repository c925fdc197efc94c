"""The tests' own Kubernetes: pods find each other on two nodes, nodes fail and return, and a killed run leaves no process."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engine.images import PYTHON, ROOT, USER
from tests.kube import cgroups, processes
from tests.kube.cluster import Cluster, remove_remains
from tests.waiting import until

NAMESPACE = "/api/v1/namespaces/default"
SERVE = "echo hello >/shared/page && cd /shared && exec python3 -m http.server"
FETCH = """\
import time, urllib.request
while True:
    try:
        print(urllib.request.urlopen("http://server.names:8000/page").read().decode(), end="", flush=True)
        time.sleep(1000)
    except OSError:
        time.sleep(0.2)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def pod(name: str, node: str, image: str, command: list[str]) -> dict[str, Any]:
    """A pod with a hostname on this node, with the claim of the test."""
    container = {
        "name": "main",
        "image": image,
        "command": command,
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"of": "names"}},
        "spec": {
            "nodeName": node,
            "hostname": name,
            "subdomain": "names",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}}],
        },
    }


def test_pods_of_two_nodes_find_each_other_by_name_and_share_a_volume(kube: Cluster) -> None:
    service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"of": "names"}}
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    made = {
        f"{NAMESPACE}/services/names": {"kind": "Service", "metadata": {"name": "names"}, "spec": service},
        f"{NAMESPACE}/persistentvolumeclaims/shared": {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "shared"},
            "spec": claim,
        },
        f"{NAMESPACE}/pods/server": pod("server", "node-1", USER, ["sh", "-c", SERVE]),
        f"{NAMESPACE}/pods/client": pod("client", "node-2", PYTHON, ["python3", "-c", FETCH]),
    }
    for path, body in made.items():
        kube.api.apply(path, {"apiVersion": "v1", **body})

    def log() -> str:
        is_running = kube.api.get(f"{NAMESPACE}/pods/client")["status"]["phase"] == "Running"
        return str(kube.api.get(f"{NAMESPACE}/pods/client/log")) if is_running else ""

    until(lambda: log() == "hello\n", "the pods reach each other")
    for path in reversed(made):
        kube.api.delete(path)
    until(lambda: not list((kube.folder / "volumes").iterdir()), "the volume is removed")


def test_a_node_that_dies_or_is_cut_off_is_lost_and_returns(kube: Cluster) -> None:
    first, second = kube.nodes
    with second.cut():
        first.kill()
        first.wait_lost()
        second.wait_lost()
        kube.start_node(first)
        first.wait_ready()
    second.wait_ready()


def test_a_cluster_whose_process_is_killed_leaves_no_process_and_the_next_one_removes_the_rest() -> None:
    with computer() as enter:
        before = outside(enter)
        process = subprocess.Popen(
            [*enter, sys.executable, "-m", "tests.kube", "--nodes=1"],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        printed = process.stdout.readline()
        folder = Path(printed.strip().removeprefix("export KUBECONFIG=")).parent
        assert processes.running_below(folder)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        until(lambda: not processes.running_below(folder), "no process remains")
        remove_remains()
        assert not folder.exists()
        assert not list(cgroups.ROOT.glob(f"*/{folder.name}"))
        after = outside(enter)
        # A mount in the copy of this computer's mounts goes when its folder is removed here, as an ended container's is.
        assert not Counter(after.pop("mounts")) - Counter(before.pop("mounts"))
        assert after == before


@contextmanager
def computer() -> Iterator[tuple[str, ...]]:
    """A network and mounts that no other test changes, as the beginning of a command in them."""
    stays = ["unshare", "--net", "--mount", "--", "sh", "-c", "ip link set lo up; echo; exec cat"]
    with subprocess.Popen(stays, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield ("nsenter", f"--target={process.pid}", "--net", "--mount", f"--wd={ROOT}", "--")


def outside(enter: tuple[str, ...]) -> dict[str, Any]:
    """What a kubelet, containerd and CNI change on a computer that is theirs."""
    seen = subprocess.run(
        [*enter, sys.executable, "-m", "tests.kube.outside"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(seen.stdout)
    return found


def test_the_sockets_of_a_killed_process_are_gone(tmp_path: Path) -> None:
    source = "import mmap, socket, time; memory = mmap.mmap(-1, 1 << 29); memory.write(bytes(1 << 29)); "
    source += (
        "server = socket.create_server(('127.0.0.1', 0)); print(server.getsockname()[1], flush=True); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", source, tmp_path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        waiting = threading.Thread(target=process.wait)
        waiting.start()
        processes.end(tmp_path)
        socket.create_server(("127.0.0.1", port)).close()
        waiting.join()
