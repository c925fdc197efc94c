"""The commands of the zip application: `keep`, `launch`, `lead`, `serve`, `tensorboard`, `call`, `forget`, `relay`, `enter`."""

import sys
import time
from pathlib import Path
from typing import List

_CRASH_SECONDS = 1.0
"""Who starts us again and again when we crash shall not do so in a tight loop."""


def main() -> int:
    """Run the command that the arguments name; the exit code."""
    verb, *rest = sys.argv[1:]
    try:
        return _run(verb, rest)
    except Exception:
        time.sleep(_CRASH_SECONDS)
        raise


def _run(verb: str, rest: List[str]) -> int:
    if verb == "lead":
        from .child import lead

        lead(rest[0], rest[1:])
    elif verb == "launch":
        from .launch import launch

        return launch(rest[0])
    elif verb == "keep":
        from .keeper import keep

        folder, address, token, *mode = rest
        return keep(Path(folder), address, Path(token), int(mode[0], 8) if mode else 0)
    elif verb == "call":
        from .call import call

        address, token, method, path, body = rest
        return call(address, Path(token), method, path, body)
    elif verb == "forget":
        from .forget import forget

        return forget(rest)
    elif verb == "relay":
        from .relay import relay

        return relay(*rest)
    elif verb == "enter":
        from .enter import enter

        return enter(Path(rest[0]), rest[1:])
    elif verb == "serve":
        from .serve import serve

        serve()
    elif verb == "tensorboard":
        from .board import board

        board()
    else:
        print(f"tfdeploy agent: no such command: {verb}", file=sys.stderr)
        return 2
    return 0
