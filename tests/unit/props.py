"""The properties of a task and of a run as a backend of containers gets them, for the tests of what is made of them."""

from typing import Any

from tfdeploy.backends.base import Cluster, RunProps, TaskProps

CANARY = "canary-7f3a"
"""Stands wherever a secret's value is."""


def cluster(project: str = "project", stack: str = "dev", name: str = "mnist") -> Cluster:
    """The handle of a cluster of containers."""
    return {"backend": "docker", "project": project, "stack": stack, "name": name, "home": "unix:///run/docker.sock"}


def supplies(**more: str) -> dict[str, str]:
    """What was made for the cluster: identities and names, never a content."""
    return {"agent": "a1 mnist-agent", "token": "t1 mnist-token", "network": "n1", **more}


def task_props(container: dict[str, Any] | None = None, **changed: Any) -> TaskProps:
    """worker-1 on an overlay network; `container` and the other arguments say what is otherwise."""
    props: Any = {
        "cluster": cluster(),
        "token": CANARY,
        "hostname": "worker-1",
        "job": "worker",
        "index": 1,
        "machine": "box",
        "memory": 0,
        "cpus": 0.0,
        "gpus": "",
        "port": 0,
        "grace": 10.0,
        "agent": "1",
        "supplies": supplies(),
        **changed,
        "container": {
            "job": "worker",
            "image": "tensorflow/tensorflow:2.20.0",
            "network": "overlay",
            "keeper": "keeper:2220",
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
        "supplies": supplies(),
        **changed,
        "container": {
            "job": "ps",
            "image": "tensorflow/tensorflow:2.20.0",
            "network": "overlay",
            "keeper": "keeper:2220",
            "user": "0",
            "mounts": [],
            "post": "id==node1",
            **(container or {}),
        },
    }
    made: RunProps = props
    return made
