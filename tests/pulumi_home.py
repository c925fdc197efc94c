"""A Pulumi home for each test project, with one folder of plugins for all of them."""

import os
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

PIP_LIST = ("-m", "pip", "list", "-v", "--format", "json")
"""What Pulumi's language host calls twice for each update."""

_FOLDER = TemporaryDirectory(prefix="tfdeploy-python-")


def pulumi_home(folder: Path) -> dict[str, str]:
    """Create `folder/pulumi-home`; the environment variables that lead Pulumi there.

    Its `plugins` folder is the user's, where set-up installs what the tests need. The engine downloads nothing: the language host
    names every installed `pulumi-*` package as required, whatever a program uses, and each download would be repeated in each home.
    """
    plugins = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    home = folder / "pulumi-home"
    home.mkdir(parents=True)
    (home / "plugins").symlink_to(plugins)
    return {
        "PULUMI_HOME": str(home),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_PYTHON_CMD": str(_python()),
    }


@cache
def _python() -> Path:
    """The Python of these tests, but for `pip list`, whose answer is stored. The tests in `tests/setup` use Python itself."""
    folder = Path(_FOLDER.name)
    folder.chmod(0o755)
    listing, command = folder / "packages.json", folder / "python"
    listing.write_bytes(subprocess.run([sys.executable, *PIP_LIST], capture_output=True, check=True).stdout)
    python, listed = shlex.quote(sys.executable), shlex.quote(str(listing))
    command.write_text(f'#!/bin/sh\n[ "$*" != "{" ".join(PIP_LIST)}" ] || exec cat {listed}\nexec {python} "$@"\n')
    command.chmod(0o755)
    return command
