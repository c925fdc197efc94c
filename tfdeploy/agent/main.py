"""The commands of the zip application: `keep`, `launch`, `lead`, `serve`."""

import signal
import sys
from pathlib import Path


def main() -> int:
    """Run the command that the arguments name; the exit code."""
    verb, *rest = sys.argv[1:]
    if verb == "lead":
        from .child import lead

        lead(rest[0], rest[1:])
    elif verb == "launch":
        from .launch import launch

        return launch(Path(rest[0]))
    elif verb == "keep":
        import os

        from .child import die_with_parent
        from .keeper import keep

        die_with_parent(signal.SIGTERM, os.getppid())
        folder, address, token = rest
        return keep(Path(folder), address, Path(token).read_text().strip())
    elif verb == "serve":
        from .serve import serve

        serve()
    else:
        print(f"tfdeploy agent: no such command: {verb}", file=sys.stderr)
        return 2
    return 0
