"""The sizes of volumes in a preview: what the engine does not say at once is not printed, and nothing waits for it."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tfdeploy.backends.docker.engine import engine as engine_module
from tfdeploy.backends.docker.engine.engine import Engine

USAGE = (
    b'{"Volumes": [{"Name": "a", "UsageData": {"Size": 7}}, {"Name": "b", "UsageData": {"Size": -1}}, {"Name": "c"}]}'
)
VERSION = b'{"ApiVersion": "1.41"}'


class SlowEngine(ThreadingHTTPServer):
    """An engine that computes sizes until it may respond."""

    daemon_threads = True

    def __init__(self) -> None:
        self.may_respond = threading.Event()
        self.paths: list[str] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_usage = not self.path.startswith("/version")
                if is_usage:
                    engine.paths.append(self.path)
                    engine.may_respond.wait()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(USAGE if is_usage else VERSION)

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def engine(self) -> Engine:
        """Its client."""
        return Engine(f"tcp://127.0.0.1:{self.server_address[1]}")


@pytest.fixture
def slow_engine() -> Iterator[SlowEngine]:
    with SlowEngine() as engine:
        yield engine
        engine.may_respond.set()
        engine.shutdown()


def test_sizes_are_those_that_the_engine_computes(slow_engine: SlowEngine) -> None:
    slow_engine.may_respond.set()
    assert slow_engine.engine.volume_sizes() == {"a": 7}
    assert slow_engine.paths == ["/system/df?type=volume"]


def test_after_the_limit_sizes_are_unknown(slow_engine: SlowEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_SIZES_SECONDS", 0.05)
    assert slow_engine.engine.volume_sizes() == {}
