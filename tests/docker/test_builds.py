"""Images that are built: what names them, what goes into them, where they are pushed to."""

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docker.project import DockerProject
from tests.engine.cli import docker
from tests.engine.nested import Nested
from tests.engine.registry import registry

JOB = (
    'command=["python", "train.py"], code="code", workers=1, container={"build": "image"}, '
    'env={"COUNTER": __import__("os").environ["COUNTER"]}'
)
SITE = "/usr/local/lib/python3.11/dist-packages"
TELLS = """\
import os, pathlib
counter = pathlib.Path(os.environ["COUNTER"]) / os.environ["TFDEPLOY_HOSTNAME"]
counter.write_text(str(int(counter.read_text() if counter.exists() else 0) + 1))
try:
    import six
    print("six", six.__version__, pathlib.Path("/built").read_text().strip())
except ImportError:
    print("no six", pathlib.Path("/built").read_text().strip())
"""
SLEEPS = "import time\ntime.sleep(600)\n"


def write_image(project: DockerProject, word: str, pip: bool = False) -> None:
    """A folder with a Dockerfile; `pip` puts this machine's pip into the image, and what it needs to reach PyPI."""
    folder = project.program / "image"
    folder.mkdir(exist_ok=True)
    lines = [f"FROM {project.image}", f"RUN echo {word} >/built"]
    spec = find_spec("pip")
    if pip and spec is not None and spec.submodule_search_locations:
        if not (folder / "pip").exists():
            shutil.copytree(spec.submodule_search_locations[0], folder / "pip", ignore=shutil.ignore_patterns("*.pyc"))
        lines.append(f"COPY pip {SITE}/pip")
        certificates = os.environ.get("PIP_CERT")
        if certificates:
            shutil.copy(certificates, folder / "certificates")
            lines += ["COPY certificates /certificates", "ENV PIP_CERT=/certificates"]
    (folder / "Dockerfile").write_text("\n".join(lines) + "\n")


def built(project: DockerProject) -> set[str]:
    """The names of the images that were built for the project."""
    return set(project.docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", *project.filters()).split())


@pytest.mark.full
def test_a_folder_is_built_and_requirements_are_a_layer_of_their_own(project: DockerProject) -> None:
    project.write(f'{JOB}, requirements=["six==1.16.0"]', TELLS)
    write_image(project, "first", pip=True)
    project.up()
    assert project.outputs()["logs"]["worker-0"] == ["six 1.16.0 first"]
    first = built(project)
    assert len(first) == 2
    running = project.docker("inspect", "--format", "{{.Config.Image}}", *project.left()["container"].split()).split()
    assert set(running) < first, "what runs has both layers"
    layers = [project.docker("image", "inspect", "--format", "{{len .RootFS.Layers}}", name) for name in first]
    assert abs(int(layers[0]) - int(layers[1])) == 1

    project.write(f'{JOB}, requirements=["six==1.16.0"]', TELLS + "# changed\n")
    assert project.up().touched() == {"test-run"}
    assert built(project) == first
    assert project.counts() == {"worker-0": 2}

    write_image(project, "second")
    project.write(JOB, TELLS + "# changed\n")
    assert "test-run" in project.up().touched()
    assert project.outputs()["logs"]["worker-0"] == ["no six second"]
    assert len(built(project) - first) == 1
    assert project.counts() == {"worker-0": 3}
    project.destroy()


@pytest.mark.parametrize("builder", ["BuildKit", "the engine's own"])
def test_requirements_that_cannot_be_installed_fail_with_the_words_of_pip(project: DockerProject, builder: str) -> None:
    if builder != "BuildKit":
        project.env["DOCKER_HOST"] = "unix:///nowhere.sock"
    write_image(project, "without pip")
    arguments = f'{JOB}, docker={{"host": "{project.host}"}}, requirements=["no-such-package-as-this==1.0"]'
    project.write(arguments, TELLS)
    failed = project.up(fails=True).output
    assert "has no pip for python3. Use an image that has it" in failed
    write_image(project, "with pip", pip=True)
    with (project.program / "image" / "Dockerfile").open("a") as file:
        file.write("ENV PIP_NO_INDEX=1\n")
    failed = project.up(fails=True).output
    assert "No matching distribution found for no-such-package-as-this==1.0" in failed
    assert "Traceback" not in failed
    project.destroy()


@pytest.mark.full
def test_an_image_is_pushed_and_pulled_by_other_machines_with_the_credentials_of_docker_login(
    nested: Nested, project_on: Callable[[str], DockerProject], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = project_on(nested.manager)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    project.env["DOCKER_CONFIG"] = str(tmp_path)
    with registry(login=True, host=nested.gateway, secured=True) as closed:
        assert closed.certificate is not None
        nested.trust(closed.address, closed.certificate)
        project.env["SSL_CERT_FILE"] = str(closed.certificate)
        login = ("login", "--username", closed.user, "--password-stdin", closed.address)
        docker(project.host, *login, stdin=closed.password)
        write_image(project, "pushed")
        apart = 'workers=2, container={"placement": ["hostname:UNIQUE", "hostname:UNLIKE:m0"], "volumes": []}, wait="0"'
        project.write(f'{JOB.replace("workers=1", apart)}, container={{"registry": "{closed.address}/team"}}', SLEEPS)
        project.init()
        project.up()
        project.until_running("worker-0", "worker-1")
        (name,) = built(project)
        repository, _, tag = name.partition(f"{closed.address}/")[2].rpartition(":")
        assert repository.startswith("team/")
        assert closed.tags(repository) == [tag]
        for hostname in ("m1", "m2"):
            show = ("container", "ls", "--format", "{{.Image}}", *project.filters())
            assert docker(nested.machines[hostname].engine, *show).partition("@")[0] == name, "it was pulled"
        state = project.call("stack", "export", "--stack", project.stack).output
        assert closed.password not in state
        project.destroy()
