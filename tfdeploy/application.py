"""The agent as one zip application, named by its content: what the backends carry to where the tasks are."""

import hashlib
import io
import zipfile
from functools import cache
from pathlib import Path

from . import agent

_START = "import sys\n\nfrom agent.main import main\n\nsys.exit(main())\n"


@cache
def application() -> bytes:
    """The zip application; the same bytes for the same agent."""
    files = {"__main__.py": _START}
    for path in sorted(Path(agent.__file__).parent.glob("*.py")):
        files[f"agent/{path.name}"] = path.read_text()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in files.items():
            target.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


@cache
def version() -> str:
    """The name that the agent's content gives it."""
    return hashlib.sha256(application()).hexdigest()[:12]
