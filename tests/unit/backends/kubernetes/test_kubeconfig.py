"""Which API server a context names, and each way to log in there."""

import base64
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.config import incluster_config

from tests.unit.backends.kubernetes.conftest import config
from tfdeploy.backends.kubernetes import kubeconfig
from tfdeploy.backends.kubernetes.api import ApiServer
from tfdeploy.backends.kubernetes.discover import discover_clusters
from tfdeploy.backends.kubernetes.kubeconfig import Kubeconfig
from tfdeploy.backends.kubernetes.namespace import chosen_place, parse_home
from tfdeploy.errors import SpecError, Unreachable

PLUGIN = """\
#!/bin/sh
echo "$KUBERNETES_EXEC_INFO" >{folder}/info
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "of-the-plugin"}}}}'
"""


def test_a_context_is_a_server_and_a_namespace(written: Any) -> None:
    written(config("one", "https://one:6443/", {}), config("two", "https://two:6443/path", {}))
    assert chosen_place().home == "of-one@https://one:6443"
    assert chosen_place("two", "mine").home == "mine@https://two:6443/path"
    assert parse_home("mine@https://two:6443/path").server == "https://two:6443/path"
    assert Kubeconfig().context_of("https://two:6443/path") == "two", "of another file, and not the current one"


@pytest.mark.parametrize(("context", "word"), [("tow", "two"), ("", "current")])
def test_what_is_not_there_is_refused_by_name(written: Any, context: str, word: str) -> None:
    content = config("two", "https://two:6443", {})
    written({**content, "current-context": ""})
    with pytest.raises(SpecError, match=word):
        chosen_place(context)
    with pytest.raises(SpecError, match="https://gone:6443"):
        Kubeconfig().context_of("https://gone:6443")


def test_each_way_to_log_in(written: Any, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(PLUGIN.format(folder=tmp_path))
    plugin.chmod(0o755)
    (tmp_path / "token").write_text("of-a-file")
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    users: dict[str, dict[str, Any]] = {
        "token": {"token": "in-it"},
        "file": {"tokenFile": str(tmp_path / "token")},
        "basic": {"username": "u", "password": "p"},
        "plugin": {"exec": command},
    }
    written(*(config(name, f"https://{name}:6443", user) for name, user in users.items()))
    sent = {name: ApiServer(f"n@https://{name}:6443").authorization() for name in users}
    assert sent == {
        "token": {"authorization": "Bearer in-it"},
        "file": {"authorization": "Bearer of-a-file"},
        "basic": {"authorization": "Basic dTpw"},
        "plugin": {"authorization": "Bearer of-the-plugin"},
    }
    assert json.loads((tmp_path / "info").read_text())["kind"] == "ExecCredential"


def test_in_a_pod_without_a_kubeconfig_its_account_logs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in (("token", "of-the-pod"), ("ca.crt", "any"), ("namespace", "of-the-pod")):
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(kubeconfig, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    environment = {"KUBECONFIG": str(tmp_path / "none"), "KUBERNETES_SERVICE_HOST": "::1"}
    for name, value in {**environment, "KUBERNETES_SERVICE_PORT": "443"}.items():
        monkeypatch.setenv(name, value)
    assert chosen_place().home == "of-the-pod@https://[::1]:443"
    assert ApiServer(chosen_place().home).authorization() == {"authorization": "bearer of-the-pod"}


def test_proxy_and_name_of_the_server_are_used(written: Any) -> None:
    options = {"proxy-url": "http://proxy:3128", "tls-server-name": "inside", "insecure-skip-tls-verify": True}
    written(config("far", "https://far:6443", {}, **options))
    configuration = ApiServer("n@https://far:6443").client.configuration
    assert configuration.proxy == "http://proxy:3128"
    assert configuration.tls_server_name == "inside"
    assert configuration.verify_ssl is False


@pytest.mark.parametrize("as_text", [False, True])
def test_no_key_is_in_a_temporary_file_while_a_process_may_be_killed(
    written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_text: bool
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    texts = {name: f"{name} of {as_text}" for name in ("client-key", "client-certificate", "certificate-authority")}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    login = {f"{name}-data": data[name] for name in ("client-key", "client-certificate")}
    content = config("one", "https://one:6443", login, **{"certificate-authority-data": data["certificate-authority"]})
    written(content)
    made = Kubeconfig(yaml.safe_dump(content) if as_text else "").configuration("one")
    paths = (made.key_file, made.cert_file, made.ssl_ca_cert)
    assert [Path(path).read_text() for path in paths] == [*texts.values()]
    assert not list(folder.iterdir())


def test_a_computer_without_a_context_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(Unreachable, match="no kubeconfig has a context"):
        discover_clusters()
