"""One call to a keeper from a command line: how it is reached where only its container's `exec` leads to it."""

import sys
from contextlib import suppress
from pathlib import Path

from .protocol import CallError, Client

REFUSED, SILENT = 1, 3
"""Exit codes: the keeper answered with a no; it did not answer."""

_SECONDS = 30.0


def call(address: str, token: Path, method: str, path: str, body: str) -> int:
    """Make the call, print the answer; the exit code. A `body` that begins with `@` names a file, which is removed."""
    data = body.encode()
    if body.startswith("@"):
        data = Path(body[1:]).read_bytes()
        with suppress(OSError):
            Path(body[1:]).unlink()
    try:
        with Client(address, token.read_text().strip(), _SECONDS) as client:
            sys.stdout.buffer.write(client.call(method, path, data))
    except CallError as error:
        print(error, file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(error, file=sys.stderr)
        return SILENT
    return 0
