"""Access to one task of a cluster in Kubernetes: the contract is `backends.base.TaskAccess`."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ...agent.model.run_state import RunState
from ...agent.record.record import ViewRequest
from ...agent.wire.rpc import CallError
from ...errors import BackendError, Forbidden
from ...units import quantity
from .. import controller_calls
from ..base import CONTROLLER, ClusterRef, TaskUsage
from ..connection import Connection
from ..container_access import ContainerAccess
from ..task_access import require_task
from .api import NOT_FOUND, ApiError, ApiServer
from .cluster_objects import objects_of
from .discover import INSTALL_METRICS
from .drift import owner_part
from .exec import PodCommand
from .labels import controller_pod, hostname_of, selector
from .permissions import NEEDED_ROLE, RUN_COMMANDS, missing
from .pods import AGENT_COMMAND, CONTAINER
from .states import LOST_REMEDY
from .task_runner import KubernetesTaskRunner


class KubernetesAccess(ContainerAccess[KubernetesTaskRunner]):
    """Pods of a namespace."""

    def known_run(self, cluster: ClusterRef) -> RunState | None:
        """As elsewhere.

        Raises:
            Forbidden: there is no copy of the record, and the user may not call the controller.
        """
        run = super().known_run(cluster)
        if run is None:
            try:
                controller_calls.view(self.runner.controller(cluster), ViewRequest())
            except Forbidden as error:
                raise Forbidden(f"{error}. {NEEDED_ROLE}") from None
            except (OSError, CallError):
                pass
        return run

    def refuse_restart(self, cluster: ClusterRef, hostname: str) -> None:
        """What its pod mounts must exist."""
        objects = self.runner.objects(cluster)
        require_task(objects.tasks(), cluster, hostname, "Job")
        job = owner_part(cluster, hostname)
        if gone := [part for part in objects.missing([hostname]) if not part.startswith(str(job))]:
            raise BackendError(
                f"{hostname} could not start again: {', '.join(gone)} is gone. `pulumi up --refresh` creates it again."
            )

    def effects(self, cluster: ClusterRef, hostname: str, train_dir: str, replace: bool) -> Sequence[str]:
        """No pod has data of its own beyond its folder, so `replace` has no further effect."""
        return [
            f"{hostname} gets a new pod, on a node that Kubernetes chooses; the other tasks continue.",
            "Files that it wrote into its pod are lost; those in claims and in folders of nodes are retained.",
        ]

    def start_again(self, cluster: ClusterRef, hostname: str, replace: bool) -> None:
        """Replace its pod."""
        objects_of(cluster).restart(hostname)

    def lost_effect(self, cluster: ClusterRef, machine: str) -> str:
        """Kubernetes itself is told that a node is lost."""
        raise BackendError(f"tfdeploy removes no node of Kubernetes: {LOST_REMEDY.format(node=machine)}.")

    def confirm_lost(self, cluster: ClusterRef, machine: str) -> None:
        """As `lost_effect`."""
        self.lost_effect(cluster, machine)

    def start_command(
        self, cluster: ClusterRef, hostname: str, words: Sequence[str], env: Mapping[str, str] = {}, tty: bool = False
    ) -> PodCommand:
        """In the pod."""
        pod = self.container(cluster, hostname, "Job")
        return PodCommand(ApiServer(cluster["home"]), pod, [*AGENT_COMMAND, *words], env, tty)

    def relay(self, cluster: ClusterRef, host: str, port: int) -> Callable[[], Connection]:
        """A command in the controller's pod, which the network policy admits. Each connection starts one, so it is asked before whether
        the user may."""
        api = ApiServer(cluster["home"])
        if missing(api, RUN_COMMANDS):
            raise Forbidden(
                f"you may not run commands in pods of {api.namespace}, as a connection to {host} does. {NEEDED_ROLE}"
            )
        command = [*AGENT_COMMAND, "tcp-relay", host, str(port)]
        return partial(PodCommand, api, controller_pod(cluster), command)

    def usage(self, cluster: ClusterRef) -> Mapping[str, TaskUsage]:
        """From metrics-server.

        Raises:
            BackendError: there is none, or the user may not ask it.
        """
        api = ApiServer(cluster["home"])
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{api.namespace}/pods"
        try:
            items = api.get(path, labelSelector=selector(cluster))["items"]
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            raise BackendError(
                f"{api.server} does not measure pods: it has no metrics-server. {INSTALL_METRICS}"
            ) from None
        usage = {}
        for item in items:
            used = dict.fromkeys(("cpu", "memory"), 0.0)
            for container in item["containers"]:
                if container["name"] == CONTAINER:
                    used = {key: float(quantity(text)) for key, text in container["usage"].items() if key in used}
            usage[hostname_of(item)] = TaskUsage(used["cpu"], int(used["memory"]))
        return {hostname: value for hostname, value in usage.items() if hostname not in ("", CONTROLLER)}
