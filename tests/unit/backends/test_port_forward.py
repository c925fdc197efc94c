"""Connections that are forwarded from a port of this computer: bytes both ways, directions that end alone, and what goes wrong."""

import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.verbs import talk
from tests.waiting import until
from tfdeploy.backends.connection import direct
from tfdeploy.backends.docker.engine.connection import TlsConnection, tls_context
from tfdeploy.backends.port_forward import Forward
from tfdeploy.errors import BackendError

DATA = bytes(range(256)) * 4096
END = b"and that was all"


def answer(peer: socket.socket) -> None:
    """Send back what comes, and say so when it has ended."""
    while data := peer.recv(1 << 16):
        peer.sendall(data)
    peer.sendall(END)


def serve(listener: socket.socket, treat: Callable[[socket.socket], None]) -> None:
    """Treat every connection in a thread of its own."""

    def one(peer: socket.socket) -> None:
        with peer:
            treat(peer)

    try:
        while True:
            threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
    except OSError:
        return


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that sends back what it gets; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, answer), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def test_another_users_program_is_refused(echo: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can run a command as another user")
    problems: list[str] = []
    forward = Forward(partial(direct, "127.0.0.1", echo), 0, problems.append)
    speak = f"exec 3<>/dev/tcp/127.0.0.1/{forward.port}; echo hello >&3; cat <&3"
    for user, heard in ((None, b"hello"), (41001, b"")):
        command = ["timeout", "5", "bash", "-c", speak if user else speak.replace("cat", "head -c 5")]
        done = subprocess.run(command, user=user, capture_output=True, check=False)
        assert done.stdout == heard
    assert problems == ["refused a connection from a program of another user of this computer"]
    forward.close()


def test_bytes_go_both_ways_and_each_half_ends_alone(echo: int) -> None:
    forward = Forward(partial(direct, "127.0.0.1", echo), 0, pytest.fail)
    port = forward.port
    with ThreadPoolExecutor(3) as executor:
        found = list(executor.map(talk, [f"127.0.0.1:{port}"] * 3, [DATA, DATA[1:], b""]))
    assert found == [DATA + END, DATA[1:] + END, END]
    forward.close()
    with pytest.raises(ConnectionRefusedError):
        talk(f"127.0.0.1:{port}", b"")


def test_who_does_not_listen_is_named(echo: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = free.getsockname()[1]
    told: list[str] = []
    forward = Forward(partial(direct, "127.0.0.1", nobody), 0, told.append)
    assert talk(f"127.0.0.1:{forward.port}", b"") == b""
    until(lambda: told, "a complaint")
    assert told == [f"127.0.0.1:{nobody}: Connection refused"]
    forward.close()
    with pytest.raises(
        BackendError, match=rf"port {echo} of this computer is not available \(Address already in use\)"
    ):
        Forward(partial(direct, "127.0.0.1", nobody), echo, told.append)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """Of 127.0.0.1: certificate and key."""
    made = (str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    command = ["openssl", "req", *kind, *names, "-out", made[0], "-keyout", made[1]]
    subprocess.run(command, check=True, capture_output=True)
    return made


def test_under_tls_a_half_ends_alone_too(certificate: tuple[str, str]) -> None:
    how = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    how.load_cert_chain(*certificate)

    def treat(peer: socket.socket) -> None:
        with suppress(ssl.SSLError), how.wrap_socket(peer, server_side=True, suppress_ragged_eofs=False) as secured:
            answer(secured)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, treat), daemon=True).start()
        plain = socket.create_connection(listener.getsockname())
        secured = TlsConnection(plain, "127.0.0.1", tls_context(certificate[0], certificate))

        def send() -> None:
            secured.sendall(DATA)
            secured.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=send)
        sending.start()
        assert secured.makefile("rb", 1 << 16).read() == DATA + END
        sending.join()
        secured.close()
        with socket.create_connection(listener.getsockname()) as other, pytest.raises(ssl.SSLCertVerificationError):
            TlsConnection(other, "127.0.0.1", tls_context(True, None))
        listener.shutdown(socket.SHUT_RDWR)
