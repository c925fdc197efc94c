"""TFJob's operator, built from its Go module and installed by the manifests there, and an MNIST job of its kind, by `kubectl`."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.engine.images import PYTHON
from tools.provision.engine import cache_folder
from tools.provision.go_programs import ENV
from tools.provision.steps import locked

from ..processes import run, until

MODULE, VERSION, PROGRAM = "github.com/kubeflow/training-operator", "v1.8.1", "training-operator.v1"
NAMESPACE, NAME = "kubeflow", "training-operator"

_BUILD = ("-trimpath", "-ldflags=-s -w", "-gcflags=all=-dwarf=false")
_BUILD_SECONDS = 1800.0
_READY_SECONDS = 300.0


def program() -> Path:
    """The operator's program, which is built once into the user's cache, in two minutes of processor time.

    Raises:
        BenchError: it cannot be built.
    """
    folder = cache_folder() / f"{NAME}-{VERSION}"
    built = folder / PROGRAM
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not built.exists():
            environment = {**os.environ, **ENV, "GOBIN": str(folder)}
            command = ["go", "install", *_BUILD, f"{MODULE}/cmd/{PROGRAM}@{VERSION}"]
            run(*command, seconds=_BUILD_SECONDS, environment=environment)
    return built


def kubectl(kubeconfig: Path, *words: str, seconds: float = 120.0) -> str:
    """What a kubectl command prints.

    Raises:
        BenchError: it failed.
    """
    return run("kubectl", f"--kubeconfig={kubeconfig}", *words, seconds=seconds)


def install(kubeconfig: Path, server: tuple[str, int], node_selector: Mapping[str, str], folder: Path) -> None:
    """Install the operator by the manifests of its module, and wait until it is ready. Its program is a file of the node, and it
    reaches the API at `server`, since nothing routes the address of a service here."""
    downloaded = json.loads(run("go", "mod", "download", "-json", f"{MODULE}@{VERSION}"))
    shutil.copytree(Path(downloaded["Dir"], "manifests"), folder, copy_function=shutil.copyfile)
    overlay = folder / "overlays" / "bench"
    overlay.mkdir()
    patch = _patch(program(), server, node_selector)
    described = {"resources": ["../standalone"], "patches": [{"patch": json.dumps(patch)}]}
    (overlay / "kustomization.yaml").write_text(json.dumps(described))
    kubectl(kubeconfig, "apply", "--server-side", "--kustomize", str(overlay))
    there = f"--namespace={NAMESPACE}"
    certificate = ("get", f"secret/{NAME}-webhook-cert", "--output=jsonpath={.data}")
    until(lambda: kubectl(kubeconfig, there, *certificate), "the certificate of the webhook")
    kubectl(kubeconfig, there, "rollout", "restart", f"deployment/{NAME}")  # else its volume has it a minute later
    kubectl(kubeconfig, there, "rollout", "status", f"deployment/{NAME}", seconds=_READY_SECONDS)


def _patch(built: Path, server: tuple[str, int], node_selector: Mapping[str, str]) -> dict[str, Any]:
    container = {
        "name": NAME,
        "image": PYTHON,
        "command": [f"/program/{built.name}", "--enable-scheme=tfjob"],
        "env": [
            {"name": "KUBERNETES_SERVICE_HOST", "value": server[0]},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(server[1])},
        ],
        "readinessProbe": {"initialDelaySeconds": 1, "periodSeconds": 1},
        "volumeMounts": [{"name": "program", "mountPath": "/program"}],
    }
    pod = {
        "nodeSelector": dict(node_selector),
        "containers": [container],
        "volumes": [{"name": "program", "hostPath": {"path": str(built.parent)}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"template": {"spec": pod}},
    }


def job(
    name: str,
    command: Sequence[str],
    workers: int,
    volumes: Mapping[str, str],
    variables: Mapping[str, str],
    places: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """One ps and some workers as a TFJob. `volumes` are folders of the node, by target; `places` has the labels of each job's nodes."""
    container = {
        "name": "tensorflow",
        "image": PYTHON,
        "command": list(command),
        "workingDir": "/code",
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "volumeMounts": [{"name": f"volume-{number}", "mountPath": target} for number, target in enumerate(volumes)],
    }
    sources = [
        {"name": f"volume-{number}", "hostPath": {"path": source}} for number, source in enumerate(volumes.values())
    ]

    def replicas(count: int, node_selector: Mapping[str, str]) -> dict[str, Any]:
        pod = {"nodeSelector": dict(node_selector), "containers": [container], "volumes": sources}
        return {"replicas": count, "restartPolicy": "OnFailure", "template": {"spec": pod}}

    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": {"PS": replicas(1, places["ps"]), "Worker": replicas(workers, places["worker"])}},
    }
