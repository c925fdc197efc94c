"""A Pulumi home for each test project, with one folder of plugins for all of them."""

import os
from collections.abc import Sequence
from pathlib import Path

from tests.pulumi_python import forked_python

_PLUGINS = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"
"""Of the user who started the tests: a test may have another home folder."""


def pulumi_home(folder: Path, modules: Sequence[str] = ()) -> dict[str, str]:
    """Create `folder/pulumi-home`; the environment variables that lead Pulumi there. Its programs will import `modules`.

    Its `plugins` folder is the user's, where set-up installs what the tests need. The engine downloads nothing: the language host
    names every installed `pulumi-*` package as required, whatever a program uses, and each download would be repeated in each home.
    """
    _PLUGINS.mkdir(parents=True, exist_ok=True)
    home = folder / "pulumi-home"
    home.mkdir(parents=True)
    (home / "plugins").symlink_to(_PLUGINS)
    return {
        "PULUMI_HOME": str(home),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_PYTHON_CMD": str(forked_python(*modules)),
    }
