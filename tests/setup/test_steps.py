"""Steps of set-up at the same time, and programs that are built from a Go module with a patched dependency."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.setup.clones import ROOT
from tools.provision import go_programs
from tools.provision.steps import SetupError, run, side_by_side

GO = """\
#!/bin/sh
# "$@" is `mod download …`, `mod edit -replace=MODULE=FOLDER FILE`, or `build … -modfile=FILE -o PROGRAM …`.
case $1$2 in
moddownload) echo '{"Dir": "%s"}' ;;
modedit) echo "$3" >>"$4" ;;
*)
    while [ "$1" != -o ]; do case $1 in -modfile=*) file=${1#*=} ;; esac; shift; done
    cat "$file" >"$2"
    cat "$(sed -n 's/^-replace=.*=//p' "$file")/main.py" >>"$2" ;;
esac
"""

INTERRUPTED = """
import sys
from pathlib import Path
from tools.provision import __main__ as main, engine, packages, steps

SLEEP = "import os, time; os.write(os.open('ready', os.O_WRONLY), b'.'); time.sleep(60); open('slept', 'w')"

def sleep(name):
    steps.run(name, [sys.executable, "-c", SLEEP], Path(name))

packages.install = lambda *_: sleep("packages")
engine.ensure = lambda _: sleep("engine")
sys.exit(main.main())
"""


def test_the_first_failure_is_reported_and_ends_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    def others() -> None:
        try:
            run("sleep", ["sh", "-c", "echo >pipe; exec sleep 60"], tmp_path / "sleep", cwd=tmp_path)
        finally:
            run("later", ["touch", tmp_path / "later"], tmp_path / "log")

    fail = ["sh", "-c", "read line <pipe; echo a reason; exit 3"]
    with pytest.raises(SetupError, match=r"(?s)^fail: `sh` ended with exit code 3.*\na reason$"):
        side_by_side(others, partial(run, "fail", fail, tmp_path / "fail", cwd=tmp_path))
    assert not (tmp_path / "later").exists()
    run("afterwards", ["true"], tmp_path / "log")


def test_an_interruption_ends_both_commands(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True
    ) as setup:
        with os.fdopen(os.open(tmp_path / "ready", os.O_RDWR)) as ready:
            assert ready.read(2) == ".."
        setup.send_signal(signal.SIGINT)
        assert setup.communicate()[1] == "tools/setup: interrupted; run it again to continue\n"
    assert setup.returncode == 130
    assert not (tmp_path / "slept").exists()


def test_a_program_is_built_once_with_its_patched_dependency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dependency, folder, programs = tmp_path / "dependency", tmp_path / "module", tmp_path / "cache" / "programs"
    for made in (dependency, folder, tmp_path / "go-bin"):
        made.mkdir()
    (dependency / "main.py").write_text("print('old')\n")
    for name in ("go.mod", "go.sum"):
        (folder / name).write_text(f"{name}\n")
    go = tmp_path / "go-bin" / "go"
    go.write_text(GO % dependency)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent), prepend=os.pathsep)

    def module(old: str, new: str) -> go_programs.Module:
        return go_programs.Module(
            folder, {"made": "."}, patch=go_programs.Patch("it", {"main.py": (old, new)}, ["main.py"])
        )

    go_programs.ensure(programs, module("old", "new"))
    assert (programs / "bin" / "made").read_text().splitlines()[0::2] == ["go.mod", "print('new')"]
    assert os.access(programs / "bin" / "main.py", os.X_OK)
    assert (dependency / "main.py").read_text() == "print('old')\n"

    monkeypatch.setenv("PATH", str(tmp_path))
    go_programs.ensure(programs, module("old", "new"))
    with pytest.raises(SetupError, match="`go` is not on PATH"):
        go_programs.ensure(programs, module("old", "newer"))
