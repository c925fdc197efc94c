"""A whole Kubernetes on this machine, in namespaces of its own: the machine's network, firewall and engine are not touched.

All its processes are in one PID namespace, whose first one ends with the process that started it, however that ends; mounts and
networks go with them. What then remains, a folder and empty cgroups, the next cluster removes.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.kube import cgroups, plane, processes
from tests.kube.api import Api, ApiFailed
from tests.kube.credentials import Authority
from tests.kube.images import PAUSE
from tests.kube.node import Node
from tests.waiting import until

PREFIX = "tfdeploy-kube-"
KINDS = {
    **dict.fromkeys(
        ("configmaps", "persistentvolumeclaims", "pods", "secrets", "serviceaccounts", "services"), "/api/v1"
    ),
    **dict.fromkeys(("daemonsets", "deployments", "replicasets", "statefulsets"), "/apis/apps/v1"),
    **dict.fromkeys(("cronjobs", "jobs"), "/apis/batch/v1"),
    **dict.fromkeys(("roles", "rolebindings"), "/apis/rbac.authorization.k8s.io/v1"),
    "leases": "/apis/coordination.k8s.io/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
}
"""What may be in a namespace, and in which group of the API."""

LOCK = "lock"
PLANE, NODE = (Path(__file__).with_name(name) for name in ("plane.sh", "node.sh"))


class Cluster:
    """A cluster that runs."""

    def __init__(self, folder: Path, kube: Path, images: Path, count: int) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._kube, self._images = kube, images
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port = self._listener.getsockname()[1]
        self._authority: Authority = plane.write_credentials(folder, self._port)
        self._parts: Mapping[str, list[str]] = plane.parts(folder, kube)
        self.api = Api(self.kubeconfig)
        self.nodes = [Node(number, folder / f"node-{number}", self.api) for number in range(1, count + 1)]

    def user(self, name: str, groups: Sequence[str] = (), namespace: str = "default") -> Path:
        """A kubeconfig of a user who may do nothing but what roles give them."""
        path = self.folder / f"kubeconfig-{name}"
        path.touch(mode=0o600)
        path.write_text(self._authority.kubeconfig(f"https://127.0.0.1:{self._port}", name, groups, namespace))
        return path

    def calls(self, user: str) -> Iterator[dict[str, Any]]:
        """What a user who is no administrator has asked of the API, as audit events of Kubernetes."""
        events = map(json.loads, (self.folder / plane.AUDIT_LOG).read_text().splitlines())
        return (event for event in events if event["user"]["username"] == user)

    def left(self, namespace: str = "default") -> set[str]:
        """All objects of a namespace but events, as KIND/NAME."""
        base = f"namespaces/{namespace}"
        lists = {kind: self.api.items(f"{group}/{base}/{kind}") for kind, group in KINDS.items()}
        return {f"{kind}/{item['metadata']['name']}" for kind, items in lists.items() for item in items}

    def start(self, part: str) -> None:
        """Start a part of the control plane that was killed."""
        self._enter(part, self._parts[part])

    def kill(self, part: str) -> None:
        """The sudden death of a part of the control plane."""
        processes.end(*self._parts[part])

    @contextmanager
    def without_api(self) -> Iterator[None]:
        """The API server is down; a context.

        Its clients in the control plane start anew after it, as they do elsewhere when they have lost their leases. Otherwise their
        watches would retry up to a minute later (client-go's backoff), and pods would be scheduled by the former state of a node.
        """
        clients = ("controller-manager", "scheduler")
        for part in ("apiserver", *clients):
            self.kill(part)
        try:
            yield
        finally:
            self.start("apiserver")
            self.wait_answers()
            for part in clients:
                self.start(part)

    def start_node(self, node: Node) -> None:
        """Start a node that was killed; it has its disk."""
        script = ["sh", NODE, node.folder, node.number, len(self.nodes), self._kube, self._images]
        namespaces = ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child=KILL"]
        self._enter(node.name, [*namespaces, *map(str, script)])

    def wait_answers(self) -> None:
        """Wait until the API answers."""
        until(self._answers, "the API server is ready", seen=self._end_of_log)

    def boot(self) -> None:
        """Start all of it, and wait until it takes pods."""
        self._start_namespaces()
        for node in self.nodes:
            node.write(PAUSE)
            self.start_node(node)
        (self.folder / "volumes").mkdir()
        self._enter("forward", [str(self._kube), "forward", f"--to={plane.ADDRESS}:6443"], self._listener.fileno())
        self._listener.close()
        self.start("etcd")
        self.start("apiserver")
        self.wait_answers()
        (self.folder / "api-is-ready").touch()
        for part in ("controller-manager", "scheduler", "names", "volumes"):
            self.start(part)
        self.api.apply(f"/apis/storage.k8s.io/v1/storageclasses/{plane.STORAGE_CLASS}", plane.storage_class())
        until(self._registered, "the nodes register", seen=self._end_of_log)
        for node in self.nodes:
            node.wait_ready()
        until(self._has_account, "the default service account exists")

    def _start_namespaces(self) -> None:
        command = ["setpriv", "--pdeathsig=KILL", "unshare", "--fork", "--pid", "--mount-proc", "--net"]
        script = ["sh", str(PLANE), str(self.folder), plane.ADDRESS, str(len(self.nodes))]
        with (self.folder / "plane.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--kill-child=KILL", *script],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def end(self) -> None:
        """End all its processes."""
        _end(self.folder)
        self._process.wait(timeout=60)

    def _first(self) -> int:
        return processes.first_of_namespace(self.folder)

    def _enter(self, name: str, command: Sequence[str], stdin: int = subprocess.DEVNULL) -> None:
        """Start a command in the namespaces; `setsid` leaves it to the first process there."""
        first = until(self._first, "the namespaces exist")
        inside = ["setsid", "--fork", "nsenter", f"--target={first}", "--pid", "--mount", "--net"]
        with (self.folder / f"{name}.log").open("ab") as log:
            subprocess.run(
                [*inside, *command],
                stdin=stdin,
                stdout=log,
                stderr=log,
                check=True,
                cwd="/",
            )

    def _answers(self) -> bool:
        with suppress(ApiFailed):
            return bool(self.api.get("/readyz") == "ok")
        return False

    def _registered(self) -> bool:
        return len(self.api.items("/api/v1/nodes")) == len(self.nodes)

    def _has_account(self) -> bool:
        with suppress(ApiFailed):
            return bool(self.api.get("/api/v1/namespaces/default/serviceaccounts/default"))
        return False

    def _end_of_log(self) -> str:
        logs = {path.name: path.read_text(errors="replace").splitlines()[-5:] for path in self.folder.glob("*.log")}
        return "\n".join(f"{name}: {line}" for name, lines in logs.items() for line in lines)


@contextmanager
def cluster(kube: Path, images: Path, nodes: int = 2) -> Iterator[Cluster]:
    """A cluster for as long as the context lasts; nothing remains of it."""
    remove_remains()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (folder / "draft").open("w") as lock:
        # Where its lock is free, another process would remove it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "draft").rename(folder / LOCK)
        made = Cluster(folder, kube, images, nodes)
        try:
            made.boot()
            yield made
        finally:
            made.end()
            _remove(folder)


def remove_remains() -> None:
    """Remove what clusters of this user have left whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if folder.stat().st_uid != os.getuid() or not (folder / LOCK).exists():
            continue
        with (folder / LOCK).open() as lock, suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _end(folder)
            _remove(folder)


def _end(folder: Path) -> None:
    if first := processes.first_of_namespace(folder):
        processes.send(first, signal.SIGKILL)


def _remove(folder: Path) -> None:
    until(lambda: not processes.running_below(folder), "the processes of the cluster have ended")
    cgroups.remove(folder.name)
    shutil.rmtree(folder)
