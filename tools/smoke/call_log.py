"""The calls of AWS's API that processes make through boto3, by client-side monitoring: each reports its calls to a UDP port.

Neither keys nor parameters are stored. Pulumi's AWS provider does not report: the SDK for Go cannot.
https://boto3.amazonaws.com/v1/documentation/api/latest/guide/configuration.html
"""

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

_HOST = "127.0.0.1"
_LARGEST = 1 << 16


@dataclass(frozen=True)
class AwsCall:
    """One attempt of a call."""

    at: float
    """In seconds since the begin of the log."""
    service: str
    operation: str
    milliseconds: int
    error: str = ""
    """AWS's code, or the name of the error in the SDK."""


@dataclass
class CallLog:
    """The calls so far."""

    begun: float = field(default_factory=time.time)
    calls: list[AwsCall] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    """The variables of processes that report to it."""

    def add(self, event: bytes) -> None:
        """Store an attempt; other events are skipped."""
        data = json.loads(event)
        if data.get("Type") != "ApiCallAttempt":
            return
        error = data.get("AwsException") or data.get("SdkException") or ""
        at = data["Timestamp"] / 1000 - self.begun
        self.calls.append(AwsCall(at, data["Service"], data["Api"], int(data["AttemptLatency"]), error))

    def summary(self) -> list[str]:
        """A line for each operation and error."""
        groups: dict[tuple[str, str], list[int]] = {}
        for call in self.calls:
            groups.setdefault((f"{call.service} {call.operation}", call.error), []).append(call.milliseconds)
        return [f"{name}{_error(error)}: {_times(times)}" for (name, error), times in sorted(groups.items())]

    @contextmanager
    def receiving(self) -> Iterator[None]:
        """Receive events until the end of the block."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
            port.bind((_HOST, 0))
            variables = {"ENABLED": "true", "HOST": _HOST, "PORT": str(port.getsockname()[1]), "CLIENT_ID": "smoke"}
            self.environment = {f"AWS_CSM_{name}": value for name, value in variables.items()}
            thread = threading.Thread(target=self._receive, args=(port,), daemon=True)
            thread.start()
            try:
                yield
            finally:
                port.sendto(b"", port.getsockname())
                thread.join()

    def _receive(self, port: socket.socket) -> None:
        while event := port.recv(_LARGEST):
            try:
                self.add(event)
            except (ValueError, KeyError, TypeError):
                continue


def _error(error: str) -> str:
    return f", {error}" if error else ""


def _times(milliseconds: Sequence[int]) -> str:
    count = len(milliseconds)
    return f"{count} x, {sum(milliseconds) // count} ms on average, {max(milliseconds)} ms at most"
