"""Fixtures of the tests of the kubernetes backend: an API server, and the files of a kubeconfig."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.backends.kubernetes.stored_api import StoredApi
from tfdeploy.backends.kubernetes.api import ApiServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> StoredApi:
    """What every `ApiServer` calls."""
    made = StoredApi()
    monkeypatch.setattr(ApiServer, "request", lambda _, *arguments: made.request(*arguments))
    return made


def config(name: str, server: str, user: dict[str, Any], **cluster: Any) -> dict[str, Any]:
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
        "users": [{"name": name, "user": user}],
    }


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def write(*configs: dict[str, Any]) -> None:
        paths = [tmp_path / f"config-{number}" for number in range(len(configs))]
        for path, content in zip(paths, configs, strict=True):
            path.write_text(yaml.safe_dump(content))
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))

    return write
