"""`python -m tests.releases.make BACKEND…`: store what the present version stores, in `VERSION/BACKEND.json`.

It runs the program twice, with the real Pulumi engine: `local` on this machine, `docker` on the engine that the tests use, `ec2` on
machines in the box, whose API is moto's, `kubernetes` on the cluster that the tests use. Run it when a version is released, and commit
what it writes.
"""

import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.box.cloud import Box
from tests.docker.project import DockerProject
from tests.ec2.project import Ec2Project
from tests.engine.daemon import engine
from tests.engine.images import PYTHON, python_image
from tests.integration.conftest import ROOT, Project
from tests.kube.cluster import cluster
from tests.kube.images import archive
from tests.kube.programs import kube
from tests.kubernetes.project import KubernetesProject
from tests.releases import stored
from tfdeploy.backends.local.paths import machine_id
from tfdeploy.backends.local.planner import this_machine

PROVIDER = "__provider"
"""The property of a dynamic resource with the name of its provider."""

ZEROS = "0" * 32
"""In place of each secret."""

TRAIN = """\
import os, pathlib, time

folder = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])
while os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    time.sleep(1)
if os.environ["TFDEPLOY_HOSTNAME"] == "worker-0":
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "saved_model.pb").write_bytes(b"a model")
    for suffix in ("data-00000-of-00001", "index"):
        (folder / f"model.ckpt-2.{suffix}").write_text("2")
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{folder}/model.ckpt-2"\\n')
for step in (1, 2):
    print(f"step {step}: loss {1 / step}", flush=True)
print("accuracy: 0.75", flush=True)
"""

ARGUMENTS = (
    'command=["python", "train.py"], code="code", workers=1, metrics={"accuracy": r"accuracy: (.*)"}, '
    'env={"RATE": "0.5"}, secrets={"PASSWORD": "of the tests"}'
)

MORE = {"local": ", ps=1", "docker": "", "ec2": ', ec2={"machine_count": 1}', "kubernetes": ""}
"""The arguments of one backend."""

_ARCHIVES = {"docker:index/serviceConfig:ServiceConfig": "data", "aws:ec2/instance:Instance": "userData"}
"""Types of resources to the property that has the archive of the agent, or of the watchdog."""

_NOT_STATE = ("sourcePosition", "stackTrace")
"""What Pulumi stores of a resource for its own messages: where the program has registered it."""

_NOT_STORED = re.compile(
    r"(^|/)(agent-\w+\.pyz|conf\.d/.*|supervisord\.conf|lock|tasks/[^/]+/token|work/.*|known_hosts|ssh_config|key.*|[a-z]+d?\.log)$"
)
"""Files of the state folder that no later version reads, or that have a secret."""


@contextmanager
def projects(backend: str) -> Iterator[Project]:
    """A project on a backend; at the end nothing is left of it."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name) / "project"
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        if backend == "local":
            yield Project(folder)
            return
        if backend == "kubernetes":
            with cluster(kube(), archive()) as made:
                patch.setenv("KUBECONFIG", str(made.kubeconfig))
                yield KubernetesProject(folder, made.kubeconfig, PYTHON)
            return
        with engine() as address:
            patch.setenv("DOCKER_HOST", address)
            image = python_image(address)
            if backend == "docker":
                yield DockerProject(folder, address, image)
                return
            with Box(address) as box:
                for variable, value in box.environment.items():
                    patch.setenv(variable, value)
                yield Ec2Project(folder, box, box.push(image))


def record(backend: str) -> dict[str, Any]:
    """What is stored of a cluster with two runs, with placeholders."""
    with projects(backend) as project:
        try:
            project.write(ARGUMENTS + MORE[backend], TRAIN)
            program = stored.read_files(project.program, lambda _: True)
            project.init()
            for run in ("first", "second"):
                set_run = project.call("config", "set", "tfdeploy:run_id", run, "--stack", project.stack)
                assert set_run.exit_code == 0, set_run.output
                project.up(env={"TFDEPLOY_WAIT": "10m"})
            export = project.call("stack", "export", "--show-secrets", "--stack", project.stack)
            assert export.exit_code == 0, export.output
            stack = json.loads(export.output)
            state = stored.read_files(
                Path(project.env["XDG_STATE_HOME"], "tfdeploy"), lambda path: not _NOT_STORED.search(path)
            )
            stack, secrets = without_secrets(without_archives(stack))
            values = {**dict.fromkeys(secrets, ZEROS), **placeholders(project, secrets)}
            data = stored.replaced({"program": program, "stack": stack, "state": state}, values)
            project.destroy()
        finally:
            project.clean()
    return dict(without_machine(data))


def placeholders(project: Project, secrets: set[str]) -> Mapping[str, str]:
    """Text of this computer to what is stored instead."""
    ref = project.ref()
    own = {str(project.folder): stored.PLACE, ref["owner"]: stored.OWNER, str(Path(sys.executable).parent): stored.BIN}
    own |= {text: name for text, name in ((machine_id(), stored.MACHINE_ID),) if text}
    if ref["backend"] == "docker":
        own[ref["home"]] = stored.ENGINE
    elif ref["backend"] == "kubernetes":
        own[ref["home"].partition("@")[2]] = stored.ENGINE
    return own


def without_machine(value: Any) -> Any:
    """JSON without the name of this machine, which may be a part of other words."""
    name = re.compile(rf"(?<![\w.-]){re.escape(this_machine().name)}(?![\w.-])")
    return stored.mapped(value, lambda text: name.sub(stored.MACHINE, text))


def without_secrets(value: Any) -> tuple[Any, set[str]]:
    """A stack without the values of its secrets, and these values."""
    secrets: set[str] = set()

    def text(item: Any) -> Any:
        if isinstance(item, str):
            secrets.update([item] if item else [])
            return item and ZEROS
        if isinstance(item, dict):
            return {key: text(member) for key, member in item.items()}
        return [text(member) for member in item] if isinstance(item, list) else item

    def walk(item: Any) -> Any:
        if isinstance(item, dict):
            if stored.IS_SECRET in item and "plaintext" in item:
                return {**item, "plaintext": json.dumps(text(json.loads(item["plaintext"])))}
            return {key: member if key == PROVIDER else walk(member) for key, member in item.items()}
        return [walk(member) for member in item] if isinstance(item, list) else item

    return walk(value), secrets


def without_archives(stack: dict[str, Any]) -> dict[str, Any]:
    """A stack without archives, which each update registers again, and without positions in programs."""
    for resource in stack["deployment"]["resources"]:
        for name in _NOT_STATE:
            resource.pop(name, None)
        archive = _ARCHIVES.get(resource["type"])
        if archive:
            resource["inputs"][archive] = resource["outputs"][archive] = ""
    return stack


def main(backends: list[str]) -> None:
    """Write the files of these backends."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    folder = stored.FOLDER / version
    folder.mkdir(exist_ok=True)
    for backend in backends:
        (folder / f"{backend}.json").write_text(json.dumps(record(backend), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
