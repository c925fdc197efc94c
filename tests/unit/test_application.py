"""The caretaker as a zip application; the agent's is proved wherever tasks run."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

from tfdeploy import application


def test_the_application_runs_where_nothing_of_ours_is(tmp_path: Path) -> None:
    program = tmp_path / "caretaker.pyz"
    program.write_bytes(application.caretaker())
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(program), "prepare"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path)},
    )
    assert "No such file or directory: '/etc/tfdeploy/caretaker.json'" in done.stderr


def test_the_application_is_as_short_as_can_be_and_the_same_each_time() -> None:
    first = application.caretaker()
    application.caretaker.cache_clear()
    assert application.caretaker() == first
    with zipfile.ZipFile(io.BytesIO(first)) as program:
        names = program.namelist()
        text = b"".join(map(program.read, names)).decode()
    assert {"__main__.py", "caretaker/__init__.py", "caretaker/main.py"} <= set(names)
    assert '"""' not in text
    assert "# " not in text
