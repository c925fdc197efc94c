"""The docker provider plugin, downloaded or built here: what tfdeploy takes for granted of it."""

import random
from pathlib import Path

import pytest

from tests.engine.cli import docker
from tests.engine.registry import Registry
from tests.integration.conftest import Project

pytestmark = pytest.mark.full

SUPPLIES = """
import base64
import pulumi
import pulumi_docker as docker

engine = docker.Provider("engine", host={host!r})
kept = pulumi.ResourceOptions(provider=engine, retain_on_delete=True)
data = base64.b64encode(b"something").decode()
pool = docker.NetworkIpamConfigArgs(subnet="10.230.{third}.0/24", gateway="10.230.{third}.1")
made = {{
    "network": docker.Network("supply", driver="overlay", opts=kept),
    "pooled": docker.Network("pooled", driver="overlay", ipam_configs=[pool], opts=kept),
    "secret": docker.Secret("supply", data=data, labels=[docker.SecretLabelArgs(label="a", value="b")], opts=kept),
    "config": docker.ServiceConfig("supply", data=data, opts=kept),
    "image": docker.RemoteImage(
        "supply",
        name="tfdeploy-test/supply:1",
        build=docker.RemoteImageBuildArgs(context="context"),
        triggers={{"content": "1"}},
        opts=kept,
    ),
}}
for kind, resource in made.items():
    pulumi.export(kind, resource.name)
"""

PUSHED = """
import pulumi
import pulumi_docker as docker

login = {{"username": "{closed.user}", "password": "{closed.password}"}}
logins = [
    docker.ProviderRegistryAuthArgs(address="http://{closed.address}", **login),
    docker.ProviderRegistryAuthArgs(address="http://{open.address}", auth_disabled=True),
]
engine = docker.Provider("engine", host={host!r}, registry_auth=logins)
kept = pulumi.ResourceOptions(provider=engine, retain_on_delete=True)
for name in ("{open.address}", "{closed.address}"):
    build = docker.RemoteImageBuildArgs(context="context")
    image = docker.RemoteImage(f"{{name}}-built", name=f"{{name}}/pushed:1", build=build, opts=kept)
    docker.RegistryImage(f"{{name}}-pushed", name=image.name, keep_remotely=True, opts=kept)
"""


@pytest.fixture
def project(engine: str, python_image: str, tmp_path: Path) -> Project:
    """A project with an image to be built."""
    found = Project(tmp_path / "project")
    (found.program / "Pulumi.yaml").write_text("name: project\nruntime: python\n")
    (found.program / "context").mkdir()
    (found.program / "context" / "Dockerfile").write_text(f"FROM {python_image}\nCOPY Dockerfile /\n")
    found.init()
    return found


def test_what_it_makes_does_not_change_and_is_healed(engine: str, project: Project) -> None:
    (project.program / "__main__.py").write_text(SUPPLIES.format(host=engine, third=random.randrange(256)))
    assert project.up().steps() == {"created": 7}
    for options in ([], ["--refresh"], ["--refresh"], []):
        assert project.up(*options).steps() == {"unchanged": 7}
    _remove(engine, project.outputs())
    assert project.up("--refresh").steps() == {"created": 5, "unchanged": 2}
    names = project.outputs()
    assert project.call("destroy", "--yes", "--skip-preview", "--stack", project.stack).exit_code == 0
    _remove(engine, names)  # destroy keeps them


def test_images_are_pushed(engine: str, project: Project, registry: Registry, login_registry: Registry) -> None:
    (project.program / "__main__.py").write_text(PUSHED.format(host=engine, open=registry, closed=login_registry))
    assert project.up().steps() == {"created": 6}
    assert registry.tags("pushed") == login_registry.tags("pushed") == ["1"]
    assert project.up("--refresh").steps() == {"unchanged": 6}
    docker(engine, "image", "rm", f"{registry.address}/pushed:1", f"{login_registry.address}/pushed:1")


def _remove(engine: str, names: dict[str, str]) -> None:
    for output, name in names.items():
        docker(engine, "network" if output == "pooled" else output, "rm", name)
