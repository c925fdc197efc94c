"""Shell completion is installed by one command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMPLETES = """
tfdeploy --install-completion </dev/null && source ~/.bashrc
COMP_WORDS=(tfdeploy stat) COMP_CWORD=1
$(complete -p tfdeploy | sed 's/.*-F \\([^ ]*\\).*/\\1/') tfdeploy stat tfdeploy
echo "completed: ${COMPREPLY[*]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_one_command_installs_completion_for_bash(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"HOME": str(tmp_path), "PATH": path, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", COMPLETES], env=env, capture_output=True, text=True, check=False)
    assert "completed: status" in done.stdout, done.stdout + done.stderr
