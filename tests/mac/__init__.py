"""A Mac, as far as a Python process can be made to look like one on Linux: for tests of the ways to `docker` and `ec2` from there."""

import os
from pathlib import Path

from tests.integration.conftest import ROOT

SITE = Path(__file__).parent / "site"
ENVIRONMENT = {"PYTHONPATH": os.pathsep.join((str(SITE), str(ROOT)))}
"""Has each Python process that is started with it look so."""
