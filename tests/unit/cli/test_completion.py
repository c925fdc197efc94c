"""Commands and their options are completed, and one command installs that in each shell. Names are in test_commands.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.debian import NotInstalled, provided
from tfdeploy.cli.completion import candidates, script
from tfdeploy.errors import UsageError


@pytest.mark.parametrize(
    ("words", "begin", "found"),
    [
        ([], "st", ["status", "stop"]),
        ([], "import-", ["import-tfjob"]),
        ([], "zz", []),
        (["logs"], "--t", ["--tail", "--timestamps"]),
        (["ps"], "--w", ["--watch"]),
        (["zz"], "", []),
    ],
)
def test_commands_and_options_are_completed(words: list[str], begin: str, found: list[str]) -> None:
    assert candidates(words, begin) == found


BASH = """
tfdeploy --install-completion </dev/null && source ~/.bashrc
COMP_WORDS=(tfdeploy stat) COMP_CWORD=1
$(complete -p tfdeploy | sed 's/.*-F \\([^ ]*\\).*/\\1/') tfdeploy stat tfdeploy
echo "completed: ${COMPREPLY[*]}"
"""

ZSH = """
tfdeploy --install-completion && tfdeploy --install-completion
function compdef { }
function compadd { print "completed: ${@[2,-1]}" }
source ~/.zshrc
words=(tfdeploy stat) CURRENT=2 PREFIX=stat
_tfdeploy
"""


@pytest.mark.parametrize(("shell", "program"), [("bash", BASH), pytest.param("zsh", ZSH, marks=pytest.mark.full)])
def test_one_command_installs_completion(shell: str, program: str, tmp_path: Path) -> None:
    if shell == "zsh":
        try:
            provided("zsh")
        except NotInstalled as reason:
            pytest.fail(str(reason), pytrace=False)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "HOME": str(tmp_path), "PATH": path, "XDG_STATE_HOME": str(tmp_path), "SHELL": f"/bin/{shell}"}
    done = subprocess.run([shell, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert "completed: status\n" in done.stdout, done.stdout + done.stderr
    (start_file,) = tmp_path.glob(".*rc")
    assert start_file.read_text() == f'source "{tmp_path}/.local/share/tfdeploy/completion.{shell}"\n'


def test_a_shell_without_completion_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    with pytest.raises(UsageError, match=r"tcsh has no completion\. Name one of bash, zsh, fish"):
        script("")
    assert "complete --command tfdeploy" in script("fish")
