"""The sizes of volumes in a preview: what the engine does not say at once is not printed, and nothing waits for it."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.volumes import volume_sizes
from tfdeploy.backends.docker.volumes.volume_sizes import VolumeSizes

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


def test_sizes_are_known_when_the_engine_has_responded(
    slow_engine: SlowEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_sizes, "_LIMIT_SECONDS", 60.0)
    sizes = VolumeSizes(slow_engine.engine)
    assert sizes.known() == {}, "nothing waits for a response"
    slow_engine.may_respond.set()
    sizes.wait()
    assert sizes.known() == {"a": 7}
    assert slow_engine.paths == ["/system/df?type=volume"]


def test_after_the_limit_sizes_are_unknown(slow_engine: SlowEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_sizes, "_LIMIT_SECONDS", 0.05)
    sizes = VolumeSizes(slow_engine.engine)
    sizes.wait()
    assert sizes.known() == {}
