"""A cluster on EC2 is planned and previewed on a Mac: nothing that only Linux has is used there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import ROOT
from tests.mac import ENVIRONMENT

PREVIEW = """\
import sys
from pathlib import Path
from tests.ec2.registering import registered

assert sys.platform == "darwin"
print(*(one.name for one in registered(Path(sys.argv[1]), preview=True)))
"""


@pytest.mark.usefixtures("moto_account")
def test_ec2_is_previewed_on_a_mac(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PREVIEW, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"mnist-worker-0", "mnist-ps-0", "mnist-run"} <= {*done.stdout.split()}
