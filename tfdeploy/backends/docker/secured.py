"""A connection under TLS that may be read by one thread while another writes, and whose sending half can be closed alone.

`ssl.SSLSocket` promises neither: https://docs.python.org/3/library/ssl.html#ssl.SSLSocket.unwrap.
"""

import io
import socket
import ssl
import threading
from contextlib import suppress
from typing import Any

_CHUNK = 1 << 16


def context(verify: bool | str | None, certificate: str | tuple[str, str] | None) -> ssl.SSLContext:
    """As `requests` has it: a file of authorities, or whether to verify at all; certificate and key of our own."""
    found = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    if not verify:
        found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
    if certificate:
        found.load_cert_chain(*([certificate] if isinstance(certificate, str) else certificate))
    return found


class Secured(io.RawIOBase):
    """The part of a socket's interface that a stream needs."""

    def __init__(self, plain: socket.socket, host: str, how: ssl.SSLContext) -> None:
        """Shake hands.

        Raises:
            OSError: they do not agree.
        """
        self._plain = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = how.wrap_bio(self._in, self._out, server_hostname=host)
        self._state, self._sending = threading.Lock(), threading.Lock()
        self._early = b""
        while not self._shaken():
            self._feed()
        self._flush()

    def _shaken(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        return True

    def _feed(self) -> None:
        data = self._plain.recv(_CHUNK)
        with self._state:
            if data:
                self._in.write(data)
            else:
                self._in.write_eof()

    def _flush(self) -> None:
        if self._out.pending:
            self._plain.sendall(self._out.read())

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes; none at the end."""
        while True:
            with self._state:
                try:
                    data = self._early[: len(buffer)] or self._tls.read(len(buffer))
                    self._early = self._early[len(data) :]
                    break
                except ssl.SSLWantReadError:
                    pass
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return 0
            self._feed()
        buffer[: len(data)] = data
        return len(data)

    def _take_early(self) -> None:
        """What has come by now: OpenSSL throws away what it meets when it ends the sending half."""
        with suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            while data := self._tls.read(_CHUNK):
                self._early += data

    def makefile(self, mode: str, size: int) -> io.BufferedReader:
        """What reads from it."""
        return io.BufferedReader(self, size)

    def sendall(self, data: bytes) -> None:
        """Send bytes."""
        with self._sending:
            with self._state:
                self._tls.write(data)
                ready = self._out.read()
            self._plain.sendall(ready)

    def shutdown(self, how: int) -> None:
        """End the sending half, or all."""
        if how == socket.SHUT_RDWR:
            self._plain.shutdown(how)
            return
        with self._sending:
            with self._state:
                self._take_early()
                with suppress(ssl.SSLError):  # the other half goes on
                    self._tls.unwrap()
                ready = self._out.read()
            self._plain.sendall(ready)

    def close(self) -> None:
        """End it."""
        self._plain.close()
        super().close()
