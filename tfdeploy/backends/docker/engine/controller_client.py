"""The controller of a cluster on a Swarm, called through the engine: a command in its container relays, without a published port."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from docker.errors import APIError

from ....agent.record.record import ViewRequest
from ....agent.remove_volumes import SERVICE
from ....agent.run_state import RunState
from ....agent.transport.rpc import CallError
from ....errors import BackendError, Unreachable
from ... import controller_calls
from ...base import CONTROLLER, ClusterRef
from ...record_copy import RecordCopy
from ..labels import cluster_filter, service_name
from .controller_relay import relay_command, shared_relay
from .engine import CALL_SECONDS, Engine
from .exec import ExecConnection


class ControllerClient:
    """Calls one cluster's controller. The contract is `backends.controller_calls.ControllerApi`."""

    def __init__(self, engine: Engine, cluster: ClusterRef) -> None:
        self._engine = engine
        self._cluster = cluster
        self._title = f"the controller of {cluster['name']}"

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Make one call.

        Raises:
            Unreachable: the engine, the controller's container or the controller does not respond.
            CallError: the controller refuses it.
        """
        relay = shared_relay(self._engine.host, service_name(self._cluster, CONTROLLER), self._start_relay)
        try:
            return relay.call(method, path, body)
        except Unreachable:
            raise
        except (APIError, BackendError) as error:
            raise Unreachable(f"{self._title}: {error}") from None
        except OSError as error:
            raise Unreachable(f"{self._title} does not respond ({error})") from None

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Make one call with JSON in both directions."""
        response = self.call(method, path, json.dumps(body or {}).encode())
        try:
            content: dict[str, Any] = json.loads(response)
        except (ValueError, RecursionError):
            raise Unreachable(f"{self._title} sent a response that is not JSON") from None
        return content

    def put_run(self, run: dict[str, Any], code: str, archive: bytes) -> dict[str, Any]:
        """Submit a run, after its code where it has some."""
        if archive:
            self.call("PUT", f"/code/{code}", archive)
        return self.json("PUT", "/run", run)

    def _start_relay(self) -> ExecConnection:
        container = self._container()
        host, _, port = _address(container).rpartition(":")
        return ExecConnection(self._engine, container["Id"], relay_command(host, port), CALL_SECONDS)

    def container(self) -> str:
        """The id of the controller's running container.

        Raises:
            Unreachable: there is none.
        """
        return str(self._container()["Id"])

    def _container(self) -> Mapping[str, Any]:
        filters = cluster_filter(self._cluster)
        filters["label"].append(f"{SERVICE}={service_name(self._cluster, CONTROLLER)}")
        containers = self._engine.call(lambda api: api.containers(filters={**filters, "status": ["running"]}))
        if not containers:
            raise Unreachable(f"{self._title} does not run")
        newest: Mapping[str, Any] = max(containers, key=lambda item: item["Created"])
        return newest

    def current_run(self) -> RunState | None:
        """The current run; None where the controller has none, or does not respond."""
        with suppress(OSError, CallError):
            return controller_calls.view(self, ViewRequest()).run_state
        return None

    def silent_seconds(self, hostname: str) -> float | None:
        """How long the controller has received nothing from a launcher of this task; None where that is unknown. 0 where no program of
        it can run: there was none, or its launcher has reported its end after the task or the run had ended."""
        try:
            view = controller_calls.view(self, ViewRequest())
        except (OSError, CallError):
            return None
        run = view.run_state
        seen = run.seen(hostname) if run else 0.0
        return view.at - seen if seen else 0.0

    def task_machine(self, hostname: str) -> str | None:
        """The machine of a task's latest launcher; None or empty where that is unknown."""
        run = self.current_run()
        task = run.tasks.get(hostname) if run else None
        return task.machine if task else None

    def last_known_run(self) -> RunState | None:
        """The current run; from the copy of the record where the controller does not respond."""
        return self.current_run() or RecordCopy(self._cluster).record.current()


def _address(container: Mapping[str, Any]) -> str:
    """The address on which the controller listens in its container, from the command that the engine lists."""
    command: list[str] = container["Command"].split()
    return command[command.index("controller") + 2]
