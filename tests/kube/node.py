"""A node of the cluster: kubelet and containerd in namespaces of its own, which may die, be cut off, and return."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kube import cgroups, processes
from tests.kube.api import Api
from tests.waiting import until

SOCKET = "/run/containerd/containerd.sock"
"""Each node's, since each has a `/run` of its own."""

CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd/state"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
"""


@dataclass(frozen=True)
class Node:
    """One node, which may be down."""

    number: int
    folder: Path
    api: Api

    @property
    def name(self) -> str:
        """Its name in the API."""
        return f"node-{self.number}"

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"/api/v1/nodes/{self.name}"

    def state(self) -> str:
        """What the API says of it: `True`, `False`, or `Unknown` when it does not report."""
        conditions = self.api.get(self.path)["status"].get("conditions", [])
        return next((condition["status"] for condition in conditions if condition["type"] == "Ready"), "Unknown")

    def wait_ready(self) -> None:
        """Wait until it is ready, and takes pods."""

        def takes_pods() -> bool:
            return self.state() == "True" and "taints" not in self.api.get(self.path)["spec"]

        until(takes_pods, f"{self.name} is ready")

    def wait_lost(self) -> None:
        """Wait until the control plane has noticed that it does not report."""
        until(lambda: self.state() == "Unknown", f"{self.name} is lost")

    def kill(self) -> None:
        """A machine's sudden death, with all containers."""
        processes.kill(processes.first_of_namespace(self.folder))

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Neither the control plane nor other nodes reach it, nor it them; a context."""
        plane = processes.first_of_namespace(self.folder.parent)
        link = ["nsenter", f"--net=/proc/{plane}/ns/net", "ip", "link", "set", f"node{self.number}"]
        subprocess.run([*link, "down"], check=True)
        try:
            yield
        finally:
            subprocess.run([*link, "up"], check=True)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Its kubelet does nothing, while containers go on; a context."""
        pids = processes.running("kubelet", f"--root-dir={self.folder}/kubelet")
        for pid in pids:
            processes.send(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                processes.send(pid, signal.SIGCONT)

    def kill_kubelet(self) -> None:
        """The sudden death of a kubelet alone; it starts again."""
        for pid in processes.running("kubelet", f"--root-dir={self.folder}/kubelet"):
            processes.send(pid, signal.SIGKILL)

    def cordon(self, is_cordoned: bool = True) -> None:
        """Let it take no new pods, or let it again."""
        self.api.merge(self.path, {"spec": {"unschedulable": is_cordoned or None}})

    def drain(self, namespace: str) -> None:
        """Cordon it, and evict the pods of a namespace, as `kubectl drain` does; returns without waiting for their end."""
        self.cordon()
        pods = f"/api/v1/namespaces/{namespace}/pods"
        for pod in self.api.items(f"{pods}?fieldSelector=spec.nodeName%3D{self.name}"):
            name = pod["metadata"]["name"]
            eviction = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": namespace},
            }
            self.api.call("POST", f"{pods}/{name}/eviction", eviction)

    def write(self, pause: str) -> None:
        """Write the settings of its programs, and make its cgroups."""
        for name in ("containerd", "kubelet", "cni", "pod-logs"):
            (self.folder / name).mkdir(parents=True)
        settings = CONTAINERD.format(folder=self.folder, socket=SOCKET, pause=pause)
        (self.folder / "containerd.toml").write_text(settings)
        (self.folder / "kubelet.json").write_text(json.dumps(self._kubelet()))
        (self.folder / "cni/pods.conflist").write_text(json.dumps(self._network()))
        cgroups.make(self._cgroup)

    @property
    def _cgroup(self) -> str:
        # A kubelet removes every cgroup of a pod below its root that is not its own, and so would end the pods of another one.
        return f"{self.folder.parent.name}/{self.name}"

    def _kubelet(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": f"10.77.0.1{self.number}",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._cgroup}",
            "clusterDNS": ["10.77.0.1"],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "failSwapOn": False,
            "imageGCHighThresholdPercent": 100,
            "makeIPTablesUtilChains": False,
            "nodeLeaseDurationSeconds": 4,
            "nodeStatusUpdateFrequency": "2s",
            "podLogsDir": f"{self.folder}/pod-logs",
            "resolvConf": "",
        }

    def _network(self) -> dict[str, Any]:
        addresses = {
            "type": "host-local",
            "dataDir": f"{self.folder}/addresses",
            "ranges": [[{"subnet": f"10.244.{self.number}.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True, "ipam": addresses}
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
