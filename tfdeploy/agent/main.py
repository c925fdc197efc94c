"""The commands of the zip application, each in the module of its name."""

import sys
import time
from pathlib import Path
from typing import List

_CRASH_SECONDS = 1.0
"""The pause after a crash: the backend restarts the process at once, again and again."""


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
        from .process import lead

        lead(rest[0], rest[1:])
    elif verb == "launch":
        from .launcher import launch

        return launch(rest[0])
    elif verb == "controller":
        from .controller_server import run_controller

        folder, address, token, *mode = rest
        return run_controller(Path(folder), address, Path(token), int(mode[0], 8) if mode else 0)
    elif verb == "call":
        from .rpc import call

        address, token, method, path, body = rest
        return call(address, Path(token), method, path, body)
    elif verb == "remove-volumes":
        from .remove_volumes import remove_volumes

        return remove_volumes(rest)
    elif verb in ("exec", "file-server", "tcp-relay"):
        return _run_for_user(verb, rest)
    elif verb == "grpc-server":
        from .grpc_server import serve

        serve()
    elif verb == "tensorboard":
        from .tensorboard import run_tensorboard

        run_tensorboard()
    else:
        print(f"tfdeploy agent: unknown command {verb!r}", file=sys.stderr)
        return 2
    return 0


def _run_for_user(verb: str, rest: List[str]) -> int:
    """Run a command that the user's computer starts in a task, with its streams."""
    if verb == "exec":
        from .exec import exec_command

        return exec_command(Path(rest[0]), rest[1:])
    if verb == "file-server":
        from .file_server import serve_files

        return serve_files(Path(rest[0]), sys.stdin.buffer, sys.stdout.buffer)
    from .tcp_relay import relay

    return relay(*rest)
