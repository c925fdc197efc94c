"""The controller of a cluster in Kubernetes, called by HTTP through the API server's proxy of its pod, without a published port."""

import base64
import http.client
import json
from contextlib import suppress
from functools import cache

from ...agent.wire.rpc import GONE, TOKEN_HEADER, CallError, CallObsolete
from ...errors import BackendError, Forbidden, Unreachable
from ..base import ClusterRef
from ..container_layout import CONTROLLER_PORT
from ..container_runner import ContainerController
from .api import FORBIDDEN, ApiError, ApiServer
from .cluster_objects import ClusterObjects
from .labels import TOKEN, controller_pod, object_name


class PodController(ContainerController):
    """Calls one cluster's controller."""

    def __init__(self, cluster: ClusterRef) -> None:
        super().__init__(cluster)
        self._api = ApiServer(cluster["home"])

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Make one call.

        Raises:
            Unreachable: the API server, the controller's pod or the controller does not respond.
            CallError: the controller refuses it.
        """
        pod = f"/api/v1/namespaces/{self._api.namespace}/pods/{controller_pod(self.cluster)}:{CONTROLLER_PORT}"
        try:
            headers = {TOKEN_HEADER: _token(self.cluster["home"], self.cluster["id"], self.cluster["name"])}
            response = self._api.request(method, f"{pod}/proxy{path}", body, headers)
        except Unreachable:
            raise
        except ApiError as error:
            failure = Forbidden if error.status == FORBIDDEN else Unreachable
            raise failure(f"{self.title} cannot be called: {error}") from None
        except BackendError as error:
            raise Unreachable(f"{self.title}: {error}") from None
        content, status = response.data, response.status
        if status < http.client.BAD_REQUEST:
            return content
        if problem := _problem_of_proxy(content):
            if status == FORBIDDEN:
                raise Forbidden(f"{self.title} cannot be called: {problem}")
            raise Unreachable(f"{self.title} does not respond ({problem})")
        text = content.decode("utf-8", "replace")[:1000]
        raise (CallObsolete if status == GONE else CallError)(f"{status} {text}")


@cache
def _token(home: str, cluster_id: str, name: str) -> str:
    """The cluster's token, which the user may read in the namespace."""
    cluster = ClusterRef(id=cluster_id, name=name, home=home, owner="", backend="", project="", stack="")
    secret = ClusterObjects(ApiServer(home), cluster).read("Secret", object_name(cluster, TOKEN))
    if secret is None:
        raise Unreachable(f"the controller of {name} does not exist")
    return base64.b64decode(secret["data"]["token"]).decode()


def _problem_of_proxy(content: bytes) -> str:
    """Why the API server could not pass a call on; empty where the response is the controller's."""
    with suppress(ValueError, AttributeError):
        status = json.loads(content)
        if status.get("kind") == "Status":
            return str(status.get("message") or status.get("reason"))
    return ""
