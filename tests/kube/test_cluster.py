"""The tests' own Kubernetes: pods find each other on two nodes, nodes fail and return, and a killed run leaves no process."""

import os
import signal
import socket
import subprocess
import sys
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
KERNEL = ("kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "net/ipv4/ip_forward")


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
    before = outside()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kube", "--nodes=1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
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
    assert outside() == before


def outside() -> dict[str, object]:
    """What a kubelet, containerd and CNI change on a machine that is theirs."""
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=False).stdout.splitlines()
    return {
        "links": {name for _, name in socket.if_nameindex()},
        "mounts": {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()},
        "rules": [line for line in rules if not line.startswith(("#", ":"))],
        "kernel": [Path("/proc/sys", setting).read_text() for setting in KERNEL],
        "folders": [Path(path).exists() for path in ("/var/lib/cni", "/var/lib/kubelet", "/run/netns")],
    }
