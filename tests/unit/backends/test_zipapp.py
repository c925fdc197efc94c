"""The watchdog as a zip application; the agent's is proved wherever tasks run. What each of its processes loads is counted here: the
processor time until a container's launcher, or its program, runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tfdeploy.backends import zipapp

LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    __import__(name)
names = list(sys.modules)
import json
print(json.dumps(names))
"""


@pytest.mark.parametrize(
    ("modules", "not_loaded"),
    [
        # Each start of a program waits for this.
        (
            ["main", "system.parent_death"],
            ["json", "pathlib", "subprocess", "threading", "typing", "agent.model.run_state"],
        ),
        # A controller has a record, and the end of a run has artifacts.
        (
            ["main", "launch.launcher"],
            [
                "uuid",
                "zipfile",
                "agent.record.artifact_selection",
                "agent.record.record",
                "agent.control.until_metrics",
            ],
        ),
        (["main", "wire.rpc"], ["shutil", "subprocess", "agent.model.run_state"]),
    ],
)
def test_a_process_of_the_agent_loads_only_what_it_needs(
    tmp_path: Path, modules: list[str], not_loaded: list[str]
) -> None:
    program = tmp_path / "agent.pyz"
    program.write_bytes(zipapp.application())
    names = [f"agent.{name}" for name in modules]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADED, str(program), *names], capture_output=True, text=True, check=True
    )
    loaded = {*json.loads(done.stdout)}
    assert {*names} <= loaded
    assert loaded.isdisjoint(not_loaded), loaded.intersection(not_loaded)


def test_compiled_modules_are_those_that_are_loaded(tmp_path: Path) -> None:
    program = tmp_path / "agent.pyz"
    program.write_bytes(zipapp.compiled_application())
    show = "import agent.launch.launcher, agent.main; print(agent.launch.launcher.__cached__, agent.main.__cached__)"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, sys.argv[1]); {show}", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{program}/agent/launch/launcher.pyc", f"{program}/agent/main.pyc"]
