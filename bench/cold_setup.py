"""How long `make setup-tests` takes on a computer that has nothing of it: once, in a clone of the last commit, with an empty HOME.

Packages come from the registries that this computer uses.
"""

import tempfile
import time
from pathlib import Path

from tests.setup.clones import clean_environment

from .processes import run as run_command
from .results import FOLDER
from .table import Row, limit

_SECONDS = 1500.0
_TARGET = 360.0


def run() -> list[Row]:
    """Once: it takes minutes."""
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        folder, environment = Path(made, "tfdeploy"), clean_environment(Path(made, "home"))
        del environment["XDG_CACHE_HOME"]  # where this user's set-up has left what it built
        run_command("git", "clone", "--quiet", str(FOLDER.parent), str(folder))
        begun = time.monotonic()
        run_command("make", "setup-tests", seconds=_SECONDS, folder=folder, environment=environment, merged=True)
        seconds = time.monotonic() - begun
    return [limit("`make setup-tests` in a clean clone with an empty HOME", [seconds], _TARGET, " s")]
