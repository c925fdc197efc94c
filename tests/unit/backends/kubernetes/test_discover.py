"""What `tfdeploy doctor` reports of an API server."""

from typing import Any

import pytest

from tests.unit.backends.kubernetes.fake_api import FakeApi
from tfdeploy.backends.kubernetes.discover import checks
from tfdeploy.errors import Unreachable


def states(groups: tuple[str, ...] = (), denied: tuple[str, ...] = (), **objects: Any) -> dict[str, str]:
    apis = {"groups": [{"name": name} for name in groups]}
    return {check.what: check.state for check in checks(FakeApi({"/apis": apis, **objects}, denied))}


def test_what_is_missing_and_whether_the_plugin_enforces_network_policies_is_reported() -> None:
    whats = ("API server", "permissions", "network policy", "metrics-server")
    assert states(("cilium.io", "metrics.k8s.io")) == dict.fromkeys(whats, "ok")
    for groups, state in (((), "warn"), (("networking.k8s.aws",), "warn"), (("crd.projectcalico.org",), "ok")):
        assert states(groups)["network policy"] == state
    assert states(denied=("list jobs",))["permissions"] == "fail"
    assert states()["metrics-server"] == "warn"


def test_a_server_that_does_not_respond(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(_: object, path: str, **__: str) -> None:
        raise Unreachable("the API server does not respond")

    monkeypatch.setattr(FakeApi, "get", get)
    (check,) = checks(FakeApi({}))
    assert (check.state, check.detail) == ("fail", "the API server does not respond")
