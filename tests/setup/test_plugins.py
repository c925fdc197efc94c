"""Set-up brings Pulumi's docker provider: the published one where it can be had, else one that is built here."""

import io
import platform
import shutil
import tarfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.setup.clones import ROOT
from tests.setup.plugin_server import plugin_server
from tfdeploy.backends.docker.discover import provider
from tools.provision import plugins
from tools.provision.engine import Engine, cache_folder

PROGRAM = "pulumi-resource-docker"
RELEASE = version("pulumi-docker")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What Pulumi calls a processor."""

PUBLISHED, BUILT = "#!/bin/sh\necho published\n", "#!/bin/sh\necho built\n"


def archive(text: str) -> bytes:
    """A published plugin: a compressed tar file with one program."""
    content = text.encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(PROGRAM)
        member.size, member.mode = len(content), 0o755
        tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Pulumi for a user who has neither plugins nor anything cached."""
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi-home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # The plugins of the environment in which the tests run must not be taken instead.
    monkeypatch.setenv("PULUMI_IGNORE_AMBIENT_PLUGINS", "true")
    folder = cache_folder() / "pulumi" / "bin"
    folder.mkdir(parents=True)
    (folder / "pulumi").symlink_to(shutil.which("pulumi") or "")
    # Without `go`: a test that comes to build a provider fails at once.
    monkeypatch.setenv("PATH", str(folder))
    return Engine(folder, "", "")


@pytest.fixture
def provide(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, bytes]], list[str]]:
    """Runs the step of set-up beside a server that has these files; the names of those that were asked for."""

    def run(files: dict[str, bytes]) -> list[str]:
        with plugin_server(files) as server, monkeypatch.context() as patch:
            for name, value in server.env.items():
                patch.setenv(name, value)
            plugins.provide_docker(ROOT, engine)
        return server.asked

    return run


def program(tmp_path: Path) -> str:
    """What stands where Pulumi looks for the plugin."""
    return (tmp_path / "pulumi-home" / "plugins" / f"resource-docker-v{RELEASE}" / PROGRAM).read_text()


def pretend_built() -> None:
    """A program in the place of the one that takes minutes to build."""
    kept = cache_folder() / f"docker-provider-{RELEASE}"
    (kept / "bin").mkdir(parents=True)
    (kept / "bin" / PROGRAM).write_text(BUILT)
    (kept / "bin" / PROGRAM).chmod(0o755)
    (kept / PROGRAM).write_text(plugins.docker_module(ROOT, RELEASE).content)


def test_the_published_provider_is_taken_where_it_can_be_had(
    provide: Callable[[dict[str, bytes]], list[str]], tmp_path: Path
) -> None:
    name = f"{PROGRAM}-v{RELEASE}-linux-{MACHINES[platform.machine()]}.tar.gz"
    assert provide({name: archive(PUBLISHED)}) == [name]
    assert program(tmp_path) == PUBLISHED
    assert provide({}) == []  # it is there


def test_one_is_built_where_the_published_provider_cannot_be_had(
    provide: Callable[[dict[str, bytes]], list[str]], tmp_path: Path
) -> None:
    pretend_built()
    assert provide({}) != []
    assert program(tmp_path) == BUILT
    assert provide({}) == []


@pytest.mark.parametrize(
    ("off", "state", "remedy"),
    [
        ("true", "fail", "pulumi plugin install resource docker; in a clone: make setup-docker"),
        ("", "warn", "pulumi plugin install resource docker"),
    ],
)
def test_doctor_says_that_a_provider_is_missing_and_whether_an_update_downloads_it(
    off: str, state: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi-home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", off)
    found = provider("docker")
    assert (found.state, found.remedy) == (state, remedy)
