"""The folder package/ as the engine starts it: a process that tells its port, and what it has to offer."""

import json
import subprocess
import sys
from pathlib import Path

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

PACKAGE = Path(__file__).parents[2] / "package"


def test_the_package_serves_its_schema() -> None:
    # The first argument is the engine's address, which only a component that is made calls.
    started = [sys.executable, str(PACKAGE), "127.0.0.1:1"]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True) as plugin:
        try:
            assert plugin.stdout is not None
            port = int(plugin.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                asked = provider_pb2.GetSchemaRequest(version=0)
                answer = provider_pb2_grpc.ResourceProviderStub(channel).GetSchema(asked, timeout=60)
        finally:
            plugin.kill()
    assert json.loads(answer.schema) == json.loads((PACKAGE / "schema.json").read_text())
