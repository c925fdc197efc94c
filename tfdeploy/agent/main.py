"""The commands of the zip application, each in the module of its name.

Every program waits for `lead`, so what only other commands need is imported by them.
"""

import sys
import time

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


def _run(verb: str, rest: "list[str]") -> int:
    if verb == "lead":
        from .system.parent_death import lead

        lead(*rest)
    elif verb == "launch":
        from .launch.launcher import launch

        return launch(rest[0])
    elif verb == "controller":
        from pathlib import Path

        from .control.controller_server import run_controller

        folder, address, token, *mode = rest
        return run_controller(Path(folder), address, Path(token), int(mode[0], 8) if mode else 0)
    elif verb == "remove-volumes":
        from .remove_volumes import remove_volumes

        return remove_volumes(rest)
    elif verb in ("exec", "archive", "tcp-relay"):
        return _run_for_user(verb, rest)
    elif verb in ("grpc-server", "data-dispatcher", "data-worker", "tensorboard"):
        _serve(verb)
    else:
        print(f"tfdeploy agent: unknown command {verb!r}", file=sys.stderr)
        return 2
    return 0


def _serve(verb: str) -> None:
    """Be the program of a task."""
    from .launch import builtin_programs

    programs = {
        "grpc-server": builtin_programs.serve_grpc,
        "data-dispatcher": builtin_programs.serve_dispatcher,
        "data-worker": builtin_programs.serve_worker,
        "tensorboard": builtin_programs.run_tensorboard,
    }
    programs[verb]()


def _run_for_user(verb: str, rest: "list[str]") -> int:
    """Run a command that the user's computer starts in a task, with its streams."""
    from pathlib import Path

    if verb == "exec":
        from .launch.exec import exec_command

        return exec_command(Path(rest[0]), rest[1:])
    if verb == "archive":
        from .launch.copy_archive import archive_to_stdout

        return archive_to_stdout(Path(rest[0]), *rest[1:])
    from .wire.tcp_relay import relay

    return relay(*rest)
