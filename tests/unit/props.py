"""The properties of a task and of a run as a backend of containers gets them, for the tests of what is made of them."""

from typing import Any

from tests.clusters import cluster_ref
from tfdeploy.backends.base import ClusterRef, RunProps, TaskProps

CANARY = "canary-7f3a"
"""Stands wherever a secret's value is."""


def cluster(project: str = "project", stack: str = "dev", name: str = "mnist") -> ClusterRef:
    return cluster_ref("docker", "unix:///run/docker.sock", project, stack, name)


def dependencies(**more: Any) -> dict[str, Any]:
    """What was created for the cluster: identities and names, never a content."""
    return {
        "agent": reference("a1 mnist-agent"),
        "token": reference("t1 mnist-token"),
        "launcher_token": reference("t2 mnist-launcher-token"),
        "network": "n1",
        **more,
    }


def reference(text: str) -> dict[str, str]:
    identity, name = text.split()
    return {"id": identity, "name": name}


def task_props(container: dict[str, Any] | None = None, **changed: Any) -> TaskProps:
    """worker-1 on an overlay network; `container` and the other arguments say what is otherwise."""
    props: Any = {
        "cluster": cluster(),
        "token": CANARY,
        "hostname": "worker-1",
        "job": "worker",
        "index": 1,
        "machine": "box",
        "limits": {},
        "gpus": [],
        "port": 0,
        "grace": 10.0,
        "agent": "1",
        "run": "r1",
        "dependencies": dependencies(),
        **changed,
        "container": {
            "job": "worker",
            "image": "tensorflow/tensorflow:2.20.0",
            "network": "overlay",
            "controller_address": "controller:2220",
            "user": "",
            "mounts": [],
            "shm_size": 0,
            "gpu_kind": "",
            **(container or {}),
        },
    }
    made: TaskProps = props
    return made


def run_props(container: dict[str, Any] | None = None, **changed: Any) -> RunProps:
    """A run on an overlay network; `container` and the other arguments say what is otherwise."""
    props: Any = {
        "cluster": cluster(),
        "token": CANARY,
        "run": {"id": "0123456789ab"},
        "code_folder": "",
        "code_without": [],
        "secrets": {"API_KEY": CANARY},
        "dependencies": dependencies(),
        **changed,
        "container": {
            "job": "ps",
            "image": "tensorflow/tensorflow:2.20.0",
            "network": "overlay",
            "controller_address": "controller:2220",
            "user": "0",
            "mounts": [],
            "constraint": "id==node1",
            **(container or {}),
        },
    }
    made: RunProps = props
    return made
