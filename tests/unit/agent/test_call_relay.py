"""The relay of calls, as the process that a backend starts."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tfdeploy.agent.wire.call_relay import TOKEN_MARK
from tfdeploy.backends.docker.engine.controller_client import relay_command

MUCH = b"0123456789" * 200_000
"""More than fits into the buffers of pipes and sockets."""

LINE = TOKEN_MARK + b"secret\n"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("secret\n")
    return path


@contextmanager
def relaying(port: int, token_file: Path) -> Iterator[tuple["subprocess.Popen[bytes]", IO[bytes], IO[bytes]]]:
    """The relay, its input and its output."""
    _, *options, _, _, _ = relay_command("", "")
    pipe = subprocess.PIPE
    command = [sys.executable, *options, "127.0.0.1", str(port), str(token_file)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, process.stdin, process.stdout
        finally:
            process.kill()


@contextmanager
def connected(token_file: Path) -> Iterator[tuple[socket.socket, IO[bytes], IO[bytes]]]:
    """The relay's peer, its input, and its output after the token; the relay must end without an error."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        relaying(listener.getsockname()[1], token_file) as (process, given, output),
    ):
        peer, _ = listener.accept()
        with peer:
            assert output.readline() == LINE
            yield peer, given, output
        assert process.wait() == 0


def _write(given: IO[bytes], data: bytes) -> None:
    given.write(data)
    given.flush()


def test_bytes_are_copied_both_ways_until_the_input_ends(token_file: Path) -> None:
    with ThreadPoolExecutor() as pool, connected(token_file) as (peer, given, output):
        for _ in range(2):
            sent = pool.submit(_write, given, MUCH)
            assert peer.recv(len(MUCH), socket.MSG_WAITALL) == MUCH
            sent.result()
            sent = pool.submit(peer.sendall, MUCH)
            assert output.read(len(MUCH)) == MUCH
            sent.result()
        given.close()
        assert peer.recv(1) == b""


def test_a_controller_that_does_not_read_on_is_heard(token_file: Path) -> None:
    with connected(token_file) as (peer, given, output):
        _write(given, MUCH[:1000])
        assert peer.recv(1) == MUCH[:1]
        peer.sendall(b"refused")
        peer.close()
        _write(given, MUCH)
        assert output.read() == b"refused"


@pytest.mark.parametrize("has_token", [False, True])
def test_what_does_not_connect_prints_why_and_no_token(token_file: Path, has_token: bool) -> None:
    if not has_token:
        token_file.unlink()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with relaying(port, token_file) as (process, _, _):
        output, errors = process.communicate()
    assert (output, process.returncode) == (b"", 3)
    expected = f"127.0.0.1:{port}: Connection refused" if has_token else f"{token_file}: No such file or directory"
    assert errors.decode().strip() == expected
