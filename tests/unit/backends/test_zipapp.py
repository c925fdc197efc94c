"""The watchdog as a zip application; the agent's is proved wherever tasks run."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

from tfdeploy.backends import zipapp


def test_the_application_runs_where_nothing_of_ours_is(tmp_path: Path) -> None:
    program = tmp_path / "watchdog.pyz"
    program.write_bytes(zipapp.watchdog())
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(program), "prepare"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path)},
    )
    assert "/etc/tfdeploy/watchdog.json cannot be read: FileNotFoundError" in done.stderr


def test_the_application_is_as_short_as_can_be_and_the_same_each_time() -> None:
    first = zipapp.watchdog()
    zipapp.watchdog.cache_clear()
    assert zipapp.watchdog() == first
    with zipfile.ZipFile(io.BytesIO(first)) as program:
        names = program.namelist()
        text = b"".join(map(program.read, names)).decode()
    assert {"__main__.py", "watchdog/__init__.py", "watchdog/main.py"} <= set(names)
    assert '"""' not in text
    assert "# " not in text
