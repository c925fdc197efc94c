"""The image with the requirements: what is reported of a build that fails."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from docker.errors import ImageNotFound

from tfdeploy.backends.docker.containers import Build
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.requirements_image import build_image
from tfdeploy.errors import CommandError

BUILD = Build("mnist:0123", "", "FROM base\n", "mnist: installing the requirements x")

FAILED: list[dict[str, Any]] = [
    {"stream": "Step 2/2 : RUN python3 -m pip install x\n"},
    {"stream": "\n"},
    {"stream": " ---> Running in 12ab\n"},
    {"stream": "ERROR: Could not find a version that satisfies the requirement x\n"},
    {"stream": "ERROR: No matching distribution found for x\n"},
    {"stream": "Removing intermediate container 12ab\n"},
    {"error": "The command '/bin/sh -c …' returned a non-zero code: 1", "errorDetail": {"code": 1, "message": "…"}},
]


class Scripted:
    """An engine that responds to a build with these messages."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages
        self.requests: list[dict[str, Any]] = []
        self._set_auth_headers: Callable[[dict[str, str]], None]

    def call_once(self, request: Callable[[Any], Any]) -> Any:
        return request(self)

    call = call_once

    def build(self, **arguments: Any) -> Iterator[dict[str, Any]]:
        self.requests.append(arguments)
        return iter(self.messages)

    def inspect_image(self, name: str) -> None:
        if name != BUILD.name:
            raise ImageNotFound(name)


def engine(*messages: dict[str, Any]) -> Engine:
    return cast(Engine, Scripted(list(messages)))


def test_a_failed_step_is_an_error_with_the_lines_that_it_printed_and_no_others() -> None:
    with pytest.raises(CommandError) as failed:
        build_image(engine(*FAILED), BUILD, {})
    assert str(failed.value) == (
        "mnist: installing the requirements x failed with exit code 1. Its last lines:\n"
        "  ERROR: Could not find a version that satisfies the requirement x\n"
        "  ERROR: No matching distribution found for x"
    )


@pytest.mark.parametrize(
    ("base", "sent"),
    [
        ("python:3.11", {"https://index.docker.io/v1/": "hub"}),
        ("registry.example:5000/a/b", {"registry.example:5000": "own"}),
        ("other.example/a", {}),
        ("helper.example/a", {}),
    ],
)
def test_the_engine_gets_the_login_of_the_base_images_registry_alone(
    base: str, sent: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"https://index.docker.io/v1/": "hub", "registry.example:5000": "own"}
    logins = {name: {"auth": base64.b64encode(f"{user}:password".encode()).decode()} for name, user in names.items()}
    helpers = {"helper.example": "is-not-installed"}
    (tmp_path / "config.json").write_text(json.dumps({"auths": logins, "credHelpers": helpers}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    client = Scripted([])
    build_image(cast(Engine, client), replace(BUILD, dockerfile=f"FROM {base}\nRUN true\n"), {})
    headers: dict[str, str] = {}
    client._set_auth_headers(headers)
    data = json.loads(base64.urlsafe_b64decode(headers["X-Registry-Config"])) if headers else {}
    assert {name: login["username"] for name, login in data.items()} == sent
