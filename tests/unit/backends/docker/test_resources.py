"""The logins of the user to registries, as Pulumi's Docker provider gets them."""

import base64
import json
from pathlib import Path

import pytest

from tests.unit.cases import spec
from tfdeploy.backends.docker.resources import _registry_auth

HOST = "registry.example.org:5000"


def logged_in(folder: Path, host: str = HOST) -> Path:
    """The file that `docker login` writes into this folder."""
    folder.mkdir(exist_ok=True)
    file = folder / "config.json"
    login = base64.b64encode(b"tester:a-password").decode()
    file.write_text(json.dumps({"auths": {host: {"auth": login}}}))
    return file


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with no login in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    return tmp_path


def only(registry: str) -> dict[str, object]:
    """The one login of a cluster with this registry, without what is not set."""
    (login,) = _registry_auth(spec(workers=1, container={"build": "image", "registry": registry})) or []
    fields = {
        name: getattr(login, name) for name in ("address", "config_file", "auth_disabled", "username", "password")
    }
    return {name: value for name, value in fields.items() if value is not None}


def test_the_login_is_read_from_the_folder_that_docker_config_names_or_the_home_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert only("127.0.0.1:5000") == {"address": "http://127.0.0.1:5000", "auth_disabled": True}, "on this machine"
    logged_in(home / ".docker", "another.example.org")
    assert only(HOST) == {"address": f"https://{HOST}", "auth_disabled": True}
    file = logged_in(home / ".docker")
    assert only(f"{HOST}/team") == {"address": f"https://{HOST}", "config_file": str(file)}
    other = logged_in(home / "other")
    monkeypatch.setenv("DOCKER_CONFIG", str(home / "other"))
    assert only(HOST) == {"address": f"https://{HOST}", "config_file": str(other)}
