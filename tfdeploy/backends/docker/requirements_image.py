"""The image with the packages of `requirements`: a dynamic resource, so that pip's own words are in the error.

Pulumi's Docker provider reports of a failed build no more than its step and exit code.
"""

import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import pulumi
from docker.auth import INDEX_NAME, INDEX_URL, encode_header, load_config, resolve_repository_name
from docker.credentials.errors import StoreError
from docker.errors import DockerException, ImageNotFound
from docker.utils import mkbuildcontext
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource

from ...errors import BackendError, CommandError
from ..backend import load
from ..base import ClusterRef
from ..requirements_status import noted
from ..stack_config import StackProvider, plain_values
from .containers import Build
from .engine.engine import Engine

if TYPE_CHECKING:
    from .task_runner import DockerTaskRunner

Props = dict[str, Any]

_SILENT_SECONDS = 1800.0
"""A build that prints nothing for so long is given up: the engine no longer responds. Pip prints nothing during a download."""

_REPLACES = ("name", "swarm")
_STEP = ("Step ", " --->", "Removing intermediate container")
"""What the builder's own lines begin with."""


def build_image(engine: Engine, build: Build, labels: Mapping[str, str]) -> None:
    """Build an image by a Dockerfile without a context. The engine gets the user's login to the registry of the base image.

    Raises:
        CommandError: a step failed; the error has the last lines that it printed.
        BackendError: the build failed otherwise, such as without its base image.
    """

    def request(client: Any) -> list[dict[str, Any]]:
        # `client.build` would send all logins of the user to the engine.
        response = client.post(
            f"{client.base_url}/v{client.api_version}/build",
            params={"t": build.name, "labels": json.dumps(dict(labels)), "rm": True, "forcerm": True},
            headers={"Content-Type": "application/x-tar"} | _login_headers(build.dockerfile),
            data=mkbuildcontext(io.BytesIO(build.dockerfile.encode())),
            stream=True,
            timeout=_SILENT_SECONDS,
        )
        if not response.ok:
            return [{"error": response.json()["message"]}]
        return [json.loads(line) for line in response.iter_lines() if line]

    messages = engine.call_once(request)
    failed = next((message for message in messages if "error" in message), None)
    if failed is None:
        return
    if not (code := failed.get("errorDetail", {}).get("code", 0)):
        raise BackendError(f"{build.action}: {failed['error']}")
    lines = "".join(message.get("stream", "") for message in messages).splitlines()
    printed = [line for line in lines if line.strip() and not line.startswith(_STEP)]
    raise CommandError(build.action, code, printed)


def _login_headers(dockerfile: str) -> dict[str, str]:
    """The header with the login to the registry of the base image; empty without one, or where its credential helper fails."""
    registry, _ = resolve_repository_name(dockerfile.splitlines()[0].removeprefix("FROM "))
    try:
        login = load_config().resolve_authconfig(registry)
    except (DockerException, StoreError):
        login = None
    name = INDEX_URL if registry == INDEX_NAME else registry
    return {"X-Registry-Config": encode_header({name: login}).decode()} if login else {}


def has_image(engine: Engine, name: str) -> bool:
    """Whether the engine has this image."""
    try:
        engine.call(lambda api: api.inspect_image(name))
    except ImageNotFound:
        return False
    return True


def _engine(cluster: ClusterRef) -> Engine:
    """The engine that manages the Swarm. For several machines an image is pushed from there."""
    return cast("DockerTaskRunner", load(cluster["backend"]).runner).engine(cluster)


class RequirementsImageProvider(StackProvider):
    """Builds the image. `cleanup` removes it by its labels."""

    def create(self, props: Props) -> CreateResult:
        """Build it."""
        plain = plain_values(props)
        build = Build(plain["name"], "", plain["dockerfile"], plain["action"])
        packages = plain["action"].partition(" requirements ")[2].split(", ")
        with noted(plain["cluster"], packages):
            build_image(_engine(plain["cluster"]), build, plain["labels"])
        return CreateResult(plain["name"], props)

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        """Another name is another image: it is a hash of the Dockerfile."""
        old, new = plain_values(olds), plain_values(news)
        replaced = [key for key in _REPLACES if new[key] is not None and new[key] != old.get(key)]
        return DiffResult(changes=bool(replaced), replaces=replaced, delete_before_replace=True)

    def read(self, id_: str, props: Props) -> ReadResult:
        """The image, or nothing where the engine no longer has it."""
        plain = plain_values(props)
        return ReadResult(id_, props) if has_image(_engine(plain["cluster"]), id_) else ReadResult(None, {})


class RequirementsImage(Resource, module="tfdeploy", name="Image"):
    """The image of the tasks, with the requirements in its last layers."""

    name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        cluster: ClusterRef,
        build: Build,
        labels: Mapping[str, str],
        swarm: pulumi.Input[str],
        opts: pulumi.ResourceOptions,
    ) -> None:
        props = {
            "cluster": cluster,
            "name": build.name,
            "dockerfile": build.dockerfile,
            "action": build.action,
            "labels": dict(labels),
            "swarm": swarm,
        }
        super().__init__(RequirementsImageProvider(), name, props, opts)
