"""The relay, as a process: that of a controller prints the token first, and ends with its peer."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tfdeploy.agent import tcp_relay
from tfdeploy.backends.docker.controller_relay import relay_command

MUCH = b"0123456789" * 200_000
"""More than fits into the buffers of pipes and sockets."""

LINE = tcp_relay.TOKEN_MARK + b"secret\n"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket to which the relay connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@contextmanager
def relaying(port: int, token_file: Path | None) -> Iterator["subprocess.Popen[bytes]"]:
    """The text of the module as a command, as in a container."""
    _, *arguments, host, _, _ = relay_command("127.0.0.1", "")
    command = [sys.executable, *arguments, host, str(port), *([str(token_file)] if token_file else [])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def received(peer: socket.socket) -> bytes:
    """All that a peer gets."""
    return b"".join(iter(lambda: peer.recv(1 << 16), b""))


@pytest.mark.parametrize("has_token", [False, True])
def test_bytes_are_copied_both_ways(listener: socket.socket, tmp_path: Path, has_token: bool) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("secret\n")
    with relaying(listener.getsockname()[1], token_file if has_token else None) as process:
        peer, _ = listener.accept()
        with peer:
            sender = threading.Thread(target=peer.sendall, args=(MUCH,))
            sender.start()
            first = LINE if has_token else b""
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.read(len(first)) == first
            assert process.stdout.read(len(MUCH)) == MUCH
            sender.join()
            with ThreadPoolExecutor() as pool:
                got = pool.submit(received, peer)
                process.stdin.write(MUCH)
                process.stdin.close()
                assert got.result() == MUCH, "the end of the input is the end of what the peer gets"
        assert process.wait() == 0


def test_a_relay_to_a_controller_ends_with_it_although_its_input_is_open(
    listener: socket.socket, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("secret")
    with relaying(listener.getsockname()[1], token_file) as process:
        peer, _ = listener.accept()
        peer.sendall(b"response")
        peer.close()
        assert process.stdout is not None
        assert process.stdout.read() == LINE + b"response"
        assert process.wait() == 0


@pytest.mark.parametrize("has_token", [False, True])
def test_what_does_not_connect_prints_why_and_no_token(tmp_path: Path, has_token: bool) -> None:
    token_file = tmp_path / "token"
    if has_token:
        token_file.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with relaying(port, token_file) as process:
        output, errors = process.communicate()
    assert output == b""
    assert process.returncode == 3
    expected = f"127.0.0.1:{port}: Connection refused" if has_token else f"{token_file}: No such file or directory"
    assert errors.decode().strip() == expected
