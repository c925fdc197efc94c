"""The stand-in as a process for all updates of a project, to which Pulumi connects by `PULUMI_DEBUG_PROVIDERS`.

Each update would start a process else, which reads the models of AWS's services for a second. It ends with its standard input.
"""

import asyncio
import sys
from collections import defaultdict
from typing import Any

import grpc.aio
from google.protobuf.empty_pb2 import Empty
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer, add_ResourceProviderServicer_to_server

from tests.box import aws_models
from tests.box.provider.provider import StandIn
from tests.box.provider.serve import VERSION


class ByConnection(ResourceProviderServicer):
    """A provider for each connection: an update has one for each provider resource, and each of them has its own settings."""

    def __init__(self) -> None:
        self._servicers: defaultdict[str, Any] = defaultdict(lambda: ProviderServicer([], VERSION, StandIn(), ""))

    def __getattribute__(self, method: str) -> Any:
        """A method of the service calls that of the connection's provider."""
        if not hasattr(ResourceProviderServicer, method) or method.startswith("_"):
            return super().__getattribute__(method)

        async def call(request: Any, context: Any) -> Any:
            if method == "Attach":
                return Empty()
            return await getattr(self._servicers[context.peer()], method)(request, context)

        return call


async def serve() -> None:
    """Print the port, then serve until standard input ends."""
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
    add_ResourceProviderServicer_to_server(ByConnection(), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with aws_models.read_once():
        asyncio.run(serve())
