"""Access to one task of a cluster in Kubernetes: the contract is `backends.base.TaskAccess`."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ...agent.run_state import RunState
from ...errors import BackendError, NotFound
from ...units import quantity
from .. import controller_calls
from ..base import CONTROLLER, ClusterRef, EngineTask, Route, TaskUsage
from ..connection import Connection
from ..container_runner import engine_reason
from ..task_access import address_of, announce, lost_in_memory, task_of, to_copy_from, to_restart, wait_until_running
from ..terminal import attach, terminal_size_env
from ..terminal import is_terminal as has_terminal
from .api import ApiError, ApiServer
from .cluster_objects import ClusterObjects
from .controller_client import PodController
from .exec import PodCommand, PodConnection
from .labels import controller_pod, hostname_of, selector
from .pods import AGENT_COMMAND, CONTAINER, TASK_FOLDER, stop_seconds
from .states import LOST_REMEDY

_STOP_MARGIN = 60.0


def _objects(cluster: ClusterRef) -> ClusterObjects:
    return ClusterObjects(ApiServer(cluster["home"]), cluster)


def _run(cluster: ClusterRef) -> RunState | None:
    return PodController(cluster).last_known_run()


class KubernetesAccess:
    """Pods of a namespace."""

    def restart_effect(self, cluster: ClusterRef, hostname: str, replace: bool) -> str:
        """The effects on the task and its data. No pod has data of its own beyond its folder, so `replace` does the same."""
        run = _run(cluster)
        to_restart(run, cluster, hostname)
        self._task(cluster, hostname)
        effects = [
            f"{hostname} gets a new pod, on a node that Kubernetes chooses; the other tasks continue.",
            "Files that it wrote into its pod are lost; those in claims and in folders of nodes are retained.",
        ]
        return " ".join([*effects, *lost_in_memory(run, hostname)])

    def restart(self, cluster: ClusterRef, hostname: str) -> None:
        """Replace its pod."""
        self._restart(cluster, hostname, "restarted")

    def replace(self, cluster: ClusterRef, hostname: str) -> None:
        """Replace its pod."""
        self._restart(cluster, hostname, "replaced")

    def _restart(self, cluster: ClusterRef, hostname: str, action: str) -> None:
        controller, objects = PodController(cluster), _objects(cluster)
        run = controller.last_known_run()
        before = to_restart(run, cluster, hostname)
        self._task(cluster, hostname)
        announce(controller, hostname, action)
        objects.restart(hostname)
        seconds = stop_seconds(float(run.spec.grace) if run else 0.0) + _STOP_MARGIN
        with engine_reason(lambda: objects.tasks().get(hostname)):
            wait_until_running(controller.current_run, before, seconds)

    def lost_effect(self, cluster: ClusterRef, machine: str) -> str:
        """Kubernetes itself is told that a node is lost."""
        raise BackendError(f"tfdeploy removes no node of Kubernetes: {LOST_REMEDY.format(node=machine)}.")

    def confirm_lost(self, cluster: ClusterRef, machine: str) -> None:
        """As `lost_effect`."""
        self.lost_effect(cluster, machine)

    def stop_training(self, cluster: ClusterRef, time_limit: float = 0.0) -> None:
        """Through the API server."""
        controller_calls.stop_training(PodController(cluster), cluster["name"], time_limit)

    def execute(self, cluster: ClusterRef, hostname: str, command: Sequence[str]) -> int:
        """Run a command in the pod, with the working directory and the environment of the task's program."""
        task_of(_run(cluster), cluster, hostname)
        is_terminal = has_terminal()
        env = {"TERM": os.environ.get("TERM", "xterm"), **terminal_size_env()} if is_terminal else {}
        words = [*AGENT_COMMAND, "exec", TASK_FOLDER, *command]
        stream = PodCommand(ApiServer(cluster["home"]), self._pod(cluster, hostname), words, env, is_terminal)
        try:
            return attach(stream)
        finally:
            stream.close()

    def files(self, cluster: ClusterRef, hostname: str) -> Connection:
        """To the file server in the task's pod."""
        to_copy_from(_run(cluster), cluster, hostname)
        command = [*AGENT_COMMAND, "file-server", TASK_FOLDER]
        return PodConnection(ApiServer(cluster["home"]), self._pod(cluster, hostname), command)

    def ssh(self, cluster: ClusterRef, machine: str) -> list[str]:
        """Not supported: the nodes belong to the user."""
        raise BackendError(
            f"tfdeploy did not create {machine} and does not know how to connect to it by ssh. "
            "Use `tfdeploy exec HOSTNAME -- sh` for a shell in a task's pod."
        )

    def route(self, cluster: ClusterRef, hostname: str, port: int = 0) -> Route:
        """Through the controller's pod, which the network policy admits."""
        host, own_port = address_of(_run(cluster), cluster, hostname)
        port = port or own_port
        api = ApiServer(cluster["home"])
        command = [*AGENT_COMMAND, "tcp-relay", host, str(port)]
        return Route(host, port, lambda: PodConnection(api, controller_pod(cluster), command))

    def usage(self, cluster: ClusterRef) -> Mapping[str, TaskUsage]:
        """From metrics-server, where there is one."""
        api = ApiServer(cluster["home"])
        usage = {}
        with suppress(ApiError):
            path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{api.namespace}/pods"
            for item in api.get(path, labelSelector=selector(cluster))["items"]:
                used = dict.fromkeys(("cpu", "memory"), 0.0)
                for container in item["containers"]:
                    if container["name"] == CONTAINER:
                        used = {key: float(quantity(text)) for key, text in container["usage"].items() if key in used}
                usage[hostname_of(item)] = TaskUsage(used["cpu"], int(used["memory"]))
        return {hostname: value for hostname, value in usage.items() if hostname not in ("", CONTROLLER)}

    def _task(self, cluster: ClusterRef, hostname: str) -> EngineTask:
        tasks = _objects(cluster).tasks()
        if hostname not in tasks:
            remedy = "`pulumi up --refresh` creates it again, unless the cluster was destroyed"
            raise NotFound(f"{hostname} of {cluster['name']} does not have a Job. {remedy}.")
        return tasks[hostname]

    def _pod(self, cluster: ClusterRef, hostname: str) -> str:
        """The name of the pod of a task.

        Raises:
            BackendError: it has none that runs now.
        """
        task = self._task(cluster, hostname)
        if not task.alive or not task.container:
            reason = f" ({task.reason})" if task.reason else ""
            raise BackendError(f"{hostname} does not have a pod now: it is {task.state}{reason}.")
        return task.container
