"""A TLS connection that one thread may read while another writes, with a sending half that can be closed alone.

`ssl.SSLSocket` promises neither: https://docs.python.org/3/library/ssl.html#ssl.SSLSocket.unwrap.
"""

import io
import socket
import ssl
import threading
from contextlib import suppress
from typing import Any

_CHUNK = 1 << 16


def tls_context(verify: bool | str | None, certificate: str | tuple[str, str] | None) -> ssl.SSLContext:
    """The TLS settings of `requests`: a file of authorities or whether to verify, and the client's certificate and key."""
    context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*([certificate] if isinstance(certificate, str) else certificate))
    return context


class TlsConnection(io.RawIOBase):
    """The part of a socket's interface that a stream needs."""

    def __init__(self, plain: socket.socket, host: str, context: ssl.SSLContext) -> None:
        """Do the handshake.

        Raises:
            OSError: it fails.
        """
        self._plain = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)
        self._state_lock, self._send_lock = threading.Lock(), threading.Lock()
        self._read_early = b""
        while not self._handshake_done():
            self._receive()
        self._flush()

    def _handshake_done(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        return True

    def _receive(self) -> None:
        data = self._plain.recv(_CHUNK)
        with self._state_lock:
            if data:
                self._in.write(data)
            else:
                self._in.write_eof()

    def _flush(self) -> None:
        if self._out.pending:
            self._plain.sendall(self._out.read())

    def readable(self) -> bool:
        """Always True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes; 0 at the end."""
        while True:
            with self._state_lock:
                try:
                    data = self._read_early[: len(buffer)] or self._tls.read(len(buffer))
                    self._read_early = self._read_early[len(data) :]
                    break
                except ssl.SSLWantReadError:
                    pass
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return 0
            self._receive()
        buffer[: len(data)] = data
        return len(data)

    def _read_pending(self) -> None:
        """Read what has arrived: OpenSSL discards it when it closes the sending half."""
        with suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            while data := self._tls.read(_CHUNK):
                self._read_early += data

    def makefile(self, mode: str, size: int) -> io.BufferedReader:
        """A buffered reader of this connection."""
        return io.BufferedReader(self, size)

    def sendall(self, data: bytes | memoryview) -> None:
        """Send bytes."""
        with self._send_lock:
            with self._state_lock:
                self._tls.write(data)
                ready = self._out.read()
            self._plain.sendall(ready)

    def shutdown(self, how: int) -> None:
        """Close the sending half, or both with SHUT_RDWR."""
        if how == socket.SHUT_RDWR:
            self._plain.shutdown(how)
            return
        with self._send_lock:
            with self._state_lock:
                self._read_pending()
                with suppress(ssl.SSLError):  # the receiving half stays open
                    self._tls.unwrap()
                ready = self._out.read()
            self._plain.sendall(ready)

    def close(self) -> None:
        """Close the connection."""
        self._plain.close()
        super().close()
