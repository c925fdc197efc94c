"""The packages that a program needs besides ours: installed once, found by the tasks, refused with pip's own words."""

import os
import stat
import sys
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.components.conftest import Standing
from tests.waiting import until
from tfdeploy.backends.local import requirements
from tfdeploy.errors import CommandError, SpecError
from tfdeploy.report.report import Report

METADATA = "Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY_POINTS = "[console_scripts]\ngreet = greeter:main\n"
GREETER = 'GREETING = "hello from greeter"\n\ndef main():\n    print(GREETING, "by its script")\n'

USES_IT = """
import subprocess, sys
import greeter
import numpy
print(greeter.GREETING, flush=True)
subprocess.run(["greet"], check=True)
"""


@pytest.fixture
def greeter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The requirement of a small package, made by hand, that needs no network and nothing to build it."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    path = tmp_path / "greeter-1.0-py3-none-any.whl"
    info = "greeter-1.0.dist-info"
    files = {
        "greeter.py": GREETER,
        f"{info}/METADATA": METADATA,
        f"{info}/WHEEL": WHEEL,
        f"{info}/entry_points.txt": ENTRY_POINTS,
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
    return f"greeter @ file://{path}"


def test_a_required_package_is_found_by_the_tasks(cluster: Standing, greeter: str) -> None:
    cluster.up(USES_IT, command=["python", "program.py"], workers=2, requirements=[greeter])
    cluster.until_state("succeeded")
    for hostname in ("worker-0", "worker-1"):
        assert cluster.output(hostname) == b"hello from greeter\nhello from greeter by its script\n"


def test_what_is_installed_is_a_state_meanwhile(
    cluster: Standing, greeter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Report] = []
    monkeypatch.setattr(requirements, "_run", lambda *_: seen.append(cluster.look()))
    cluster.declare(USES_IT, command=["python", "program.py"], workers=1, requirements=[greeter, "other==2.15.*"])
    with suppress(StopIteration):  # there is no environment
        cluster.stand()
    (report,) = seen
    assert report.state == "starting"
    assert report.reason.startswith(f"installing {greeter}, other==2.15.*, ")
    assert report.tasks[0]["status"] == "installing packages"
    assert "installing" not in cluster.look().status


def test_it_is_installed_once_and_again_where_that_was_cut_short(greeter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = requirements.search_path([greeter])
    with monkeypatch.context() as patch:
        patch.setattr(requirements, "_run", lambda *_: pytest.fail("it is installed again"))
        assert requirements.search_path([greeter]) == first
    folder = Path(first[0]).parent
    (folder / "complete").unlink()
    (folder / "bin" / "greet").unlink()
    requirements.search_path([greeter])
    assert (folder / "bin" / "greet").exists()


def test_what_pip_cannot_install_fails_with_its_last_lines(cluster: Standing, greeter: str) -> None:
    cluster.declare(USES_IT, workers=1, requirements=["no-such-package-as-this==1.0"])
    with pytest.raises(CommandError, match="No matching distribution found") as refused:
        cluster.stand()
    assert refused.value.exit_code == 1
    assert "installing the requirements no-such-package-as-this==1.0 failed with exit code 1" in str(refused.value)
    cluster.up(USES_IT, command=["python", "program.py"], workers=1, requirements=[greeter])
    until(lambda: cluster.look().state == "succeeded", "mended requirements")


SHOWS_SHELL = """
import os
from steps import begin, wait_for

print(*(os.environ.get(name, "-") for name in ("PYTHONPATH", "TMPDIR")), os.environ["PATH"].split(":")[-1], flush=True)
begin()
wait_for("gate")
"""


def test_the_environment_of_a_run_is_that_of_the_shell_that_began_it(
    cluster: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.environ["PATH"]

    def shell(name: str) -> bytes:
        """Another shell, with folders and a secret of its own."""
        folder = cluster.folder / name
        folder.mkdir(exist_ok=True)
        (folder / f"only-in-{name}").write_text("#!/bin/sh\n")
        (folder / f"only-in-{name}").chmod(0o755)
        for variable in ("PYTHONPATH", "TMPDIR"):
            monkeypatch.setenv(variable, str(folder))
        monkeypatch.setenv("PATH", f"{plain}:{folder}")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-shell")
        return f"{folder} {folder} {folder}\n".encode()

    first = shell("first")
    cluster.train(SHOWS_SHELL, workers=1)
    cluster.until_output("worker-0", first)
    shell("second")
    cluster.declare(SHOWS_SHELL, workers=2, command=[sys.executable, "program.py", "first"])
    cluster.stand()
    cluster.until_output("worker-0", first + first)
    cluster.until_output("worker-1", first)
    cluster.spec = replace(cluster.spec, command=("only-in-second",))
    with pytest.raises(SpecError, match="'only-in-second' does not exist"):
        cluster.validate()
    second = shell("second")
    cluster.train(SHOWS_SHELL, ("second",), workers=1)
    cluster.until_output("worker-0", second)
    files = list(cluster.places.environments.iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert not any("of-the-shell" in path.read_text() for path in files)
