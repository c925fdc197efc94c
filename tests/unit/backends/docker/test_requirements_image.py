"""The image with the requirements: what is reported of a build that fails; the login with which its base is pulled."""

import base64
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

import pytest
from docker.errors import ImageNotFound
from requests import Response

from tests.unit.backends.docker.fake_engine import FakeApi
from tfdeploy.backends.docker.containers import Build
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.requirements_image import build_image, has_image
from tfdeploy.errors import BackendError, CommandError

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


class Scripted(FakeApi):
    base_url, api_version = "http+docker://localhost", "1.44"

    def __init__(self, messages: list[dict[str, Any]], status: int = 200) -> None:
        self.messages, self.status = messages, status
        self.requests: list[dict[str, Any]] = []

    def post(self, url: str, **arguments: Any) -> Response:
        self.requests.append({"url": url} | arguments)
        response = Response()
        response.status_code = self.status
        response.raw = io.BytesIO(b"".join(json.dumps(message).encode() + b"\r\n" for message in self.messages))
        return response

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


def test_a_build_that_cannot_begin_is_an_error_with_the_words_of_the_engine() -> None:
    with pytest.raises(BackendError, match="mnist: installing the requirements x: pull access denied for base"):
        build_image(engine({"error": "pull access denied for base", "errorDetail": {"message": "…"}}), BUILD, {})
    refused = Scripted([{"message": "dockerfile parse error on line 1"}], status=400)
    with pytest.raises(BackendError, match="mnist: installing the requirements x: dockerfile parse error on line 1"):
        build_image(cast(Engine, refused), BUILD, {})


def test_a_build_has_the_name_and_the_labels_and_an_image_that_the_engine_has_no_longer_is_missing() -> None:
    assert has_image(engine(), BUILD.name)
    assert not has_image(engine(), "other:0")
    scripted = Scripted([{"stream": "Successfully tagged"}])
    build_image(cast(Engine, scripted), BUILD, {"a": "b"})
    (request,) = scripted.requests
    with tarfile.open(fileobj=request["data"]) as context:
        dockerfile = cast(IO[bytes], context.extractfile("Dockerfile")).read()
    assert request["url"] == "http+docker://localhost/v1.44/build"
    assert (request["params"]["t"], json.loads(request["params"]["labels"])) == ("mnist:0123", {"a": "b"})
    assert dockerfile == b"FROM base\n"


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
    encoded = client.requests[0]["headers"].get("X-Registry-Config")
    data = json.loads(base64.urlsafe_b64decode(encoded)) if encoded else {}
    assert {name: login["username"] for name, login in data.items()} == sent
