"""A controller in a container, however its calls reach it."""

from contextlib import suppress
from typing import Any

from ..agent.record.record import ViewRequest
from ..agent.run_state import RunState
from ..agent.transport.rpc import CallError, Client
from ..errors import Unreachable
from . import controller_calls
from .base import ClusterRef
from .record_copy import RecordCopy


class ContainerController(Client):
    """Calls one cluster's controller; threads may share it. An engine has `call`."""

    def __init__(self, cluster: ClusterRef) -> None:
        super().__init__("", "")
        self.cluster = cluster
        self.title = f"the controller of {cluster['name']}"

    def json_bytes(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        """Make one call with a response in JSON."""
        try:
            return super().json_bytes(method, path, body)
        except (ValueError, RecursionError):
            raise Unreachable(f"{self.title} sent a response that is not JSON") from None

    def current_run(self) -> RunState | None:
        """The current run; None where the controller has none, or does not respond."""
        with suppress(OSError, CallError):
            return controller_calls.view(self, ViewRequest()).run_state
        return None

    def last_known_run(self) -> RunState | None:
        """The current run; from the copy of the record where the controller does not respond."""
        return self.current_run() or RecordCopy(self.cluster).record.current()
