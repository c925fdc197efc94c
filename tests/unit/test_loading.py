"""What a command, a program and a preview load: other modules would only delay them."""

import subprocess
import sys
from collections.abc import Sequence

import pytest


def loaded(program: str) -> set[str]:
    text = f"import sys\n{program}\nprint(*sys.modules)"
    return {*subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()}


def named(modules: set[str], packages: Sequence[str]) -> list[str]:
    return sorted(name for name in modules if any(name == one or name.startswith(f"{one}.") for one in packages))


def test_importing_the_component_loads_its_arguments_and_outputs_alone() -> None:
    names = {"args", "cluster", "outputs", "program", "program.tracebacks"}
    modules = loaded("from tfdeploy import TensorFlowCluster")
    assert named(modules, ["tfdeploy"]) == ["tfdeploy", *sorted(f"tfdeploy.{name}" for name in names)]


def test_the_first_preview_loads_no_other_backend_no_observation_and_no_history() -> None:
    modules = loaded("import tfdeploy.program.registration") - loaded("import pulumi")
    heavy = ["tensorflow", "psutil", "supervisor", "docker", "boto3", "pulumi_docker", "pulumi_aws"]
    backends = ["backends.local", "backends.docker", "backends.ec2.backend", "backends.move_record"]
    reports = [
        "report.diagnosis",
        "report.report",
        "report.run_history",
        "report.update_wait",
    ]
    assert named(modules, [*heavy, *(f"tfdeploy.{name}" for name in [*backends, *reports])]) == []


COMMAND = """
from contextlib import redirect_stdout, suppress
from io import StringIO
from tfdeploy.cli.main import main
sys.argv = ["tfdeploy", "{}"]
with suppress(SystemExit), redirect_stdout(StringIO()):
    main()
"""

COMPLETION = """
import os
os.environ["_TFDEPLOY_COMPLETE"] = "st"
from tfdeploy.cli.main import call
from contextlib import redirect_stdout
from io import StringIO
with redirect_stdout(StringIO()):
    call([])
"""

SLOW = ("pulumi", "rich", "yaml", "psutil", "logging", "uuid", "platform", "traceback", "difflib", "statistics")
"""Modules that take long to load, and that most calls do not need."""

LOADED = [
    (
        COMMAND.format("--help"),
        (
            *(
                "pulumi",
                "psutil",
                "yaml",
                "pydantic",
                "json",
                "logging",
                "subprocess",
                "tfdeploy.registry",
                "tfdeploy.agent.record.record",
                "tfdeploy.backends",
            ),
            *("tfdeploy.spec", "tfdeploy.plan", "tfdeploy.cli.commands", "tfdeploy.cli.cluster_selection"),
        ),
        10,
    ),
    ("import os\nos.chdir('/')" + COMMAND.format("status"), SLOW, 67),
    (
        "import os\nos.chdir('/')" + COMMAND.format('logs", "--stack", "dev", "--since", "5m", "worker-0'),
        ("pulumi", "rich", "pydantic"),
        65,
    ),
    (
        "from tfdeploy.cli.commands import status, logs, ls; import tfdeploy.backends.local.task_runner",
        (
            *SLOW,
            "tfdeploy.agent.model.sync",
            "tfdeploy.agent.model.settings",
            "tfdeploy.agent.record.artifact_selection",
            "tfdeploy.agent.record.output_search",
            "tfdeploy.backends.zipapp",
            "tfdeploy.backends.move_checks",
            "tfdeploy.report.diagnosis",
            "packaging",
            "pathspec",
            "tfdeploy.plan",
            "tfdeploy.spec.cluster",
            "tfdeploy.args",
            *("shutil", "subprocess", "textwrap", "zipfile"),
        ),
        73,
    ),
    (COMPLETION, (*SLOW, "subprocess", "tfdeploy.registry"), 9),
]
"""A program, what it does not load, and how many of our modules at most."""


@pytest.mark.parametrize(
    ("program", "without", "most"),
    LOADED,
    ids=["help", "without options", "a command", "status, logs and ls", "completion"],
)
def test_only_what_is_used_is_loaded(program: str, without: Sequence[str], most: int) -> None:
    modules = loaded(program)
    assert sorted(modules & {*without}) == []
    ours = {name for name in modules if name.partition(".")[0] == "tfdeploy"}
    assert len(ours) <= most, "more of our modules than before: import them where they are used"
