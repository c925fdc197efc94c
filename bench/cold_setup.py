"""How long `make mnist` and `make setup-tests` take on a computer that has nothing of them: in a clean clone, with an empty HOME."""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.setup.clones import clean_environment

from .ending import undisturbed
from .engine import ROOT
from .pairs import log
from .processes import run as run_command
from .table import Row, limit

_SECONDS = 1500.0
_TARGET = 360.0


def run() -> list[Row]:
    """Both, once: each takes minutes."""
    return [_row(target) for target in ("mnist", "setup-tests")]


def _row(target: str) -> Row:
    with _clone() as (folder, environment):
        begun = time.monotonic()
        try:
            run_command("make", target, seconds=_SECONDS, folder=folder, environment=environment, merged=True)
        finally:
            seconds = time.monotonic() - begun
            with undisturbed():
                _destroy(folder, environment)
    log(f"make {target}: {seconds:.0f} s")
    return limit(f"`make {target}` in a clean clone with an empty HOME", [seconds], _TARGET, " s")


@contextmanager
def _clone() -> Iterator[tuple[Path, Mapping[str, str]]]:
    """A clone of the last commit, and an environment with a new HOME, without what this one has set up."""
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        folder, home = Path(made) / "tfdeploy", Path(made) / "home"
        environment = clean_environment(home)
        del environment["XDG_CACHE_HOME"]  # where this user's set-up has left what it built
        run_command("git", "clone", "--quiet", str(ROOT.parent), str(folder))
        yield folder, environment


def _destroy(folder: Path, environment: Mapping[str, str]) -> None:
    """Remove the cluster of `make mnist`, if there is one."""
    if (folder / "Pulumi.dev.yaml").exists():
        script = "source tools/activate && pulumi destroy --yes --skip-preview"
        run_command("bash", "-c", script, folder=folder, environment=environment)
