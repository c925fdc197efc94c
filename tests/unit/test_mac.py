"""On a Mac everything but the local backend can be imported."""

import os
import subprocess
import sys

from tests.mac import ENVIRONMENT

IMPORTS = """\
import importlib, pkgutil, sys, tfdeploy

assert sys.platform == "darwin"
elsewhere = ("tfdeploy.backends.local", "tfdeploy.backends.ec2.watchdog", "tfdeploy.agent.launch.builtin_programs")
for module in pkgutil.walk_packages(tfdeploy.__path__, "tfdeploy."):
    if not module.name.startswith(elsewhere):
        importlib.import_module(module.name)
"""


def test_nothing_that_only_linux_has_is_imported_on_a_mac() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
