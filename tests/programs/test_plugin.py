"""The component from a language that is not Python: what a program in YAML gives it, and what it hears of the job."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from tests.integration.conftest import Project
from tests.waiting import until

OUTPUTS = ("status", "tasks", "state", "run", "logs", "metrics")


@pytest.fixture
def yaml(projects: Callable[[str], Project]) -> Callable[..., Project]:
    """Makes a project whose program is in YAML, with one cluster of the name test, and its stack."""

    def make(script: str, main: str = "", stash: Any = None, **properties: Any) -> Project:
        project = projects(f"yaml-{token_hex(2)}")
        project.name = "yaml"
        given = {"command": ["python", "train.py"], "code": "code", "workers": 1, **properties}
        resources = {"test": {"type": "tfdeploy:TensorFlowCluster", "properties": given}}
        if stash is not None:
            resources["stash"] = {"type": "pulumi:index:Stash", "properties": {"input": stash}}
        outputs = {name: f"${{test.{name}}}" for name in OUTPUTS} | {"exit_code": "${test.tasks[0].exitCode}"}
        # JSON is YAML.
        program = f"resources: {json.dumps(resources)}\noutputs: {json.dumps(outputs)}\n"
        about = "name: yaml\nruntime: yaml\n"
        (project.program / main).mkdir(exist_ok=True)
        (project.program / "Pulumi.yaml").write_text(about + (f"main: {main}\n" if main else program))
        if main:
            (project.program / main / "Main.yaml").write_text(program)
        (project.program / main / "code").mkdir()
        (project.program / main / "code" / "train.py").write_text(script)
        project.init()
        return project

    return make


def test_values_of_every_kind_and_outputs_of_other_resources_arrive(yaml: Callable[..., Project]) -> None:
    project = yaml(
        "import os, sys\n"
        "print(os.environ['TFDEPLOY_CONTEXT'], os.environ['TOKEN'][::-1], os.environ['PLACE'], os.environ['BUCKET'], *sys.argv[1:2],"
        " os.environ['TFDEPLOY_TRAIN_DIR'])\n"
        "print('loss: 0.25')",
        main="infra",
        stash={"bucket": "b1", "workers": 2, "rate": 0.5, "backend": "local"},
        command=["python", "train.py", '${stash.output["bucket"]}'],
        workers='${stash.output["workers"]}',
        backend='${stash.output["backend"]}',
        context={"steps": 200, "rate": '${stash.output["rate"]}', "deep": {"layers": [1, 2]}},
        secrets={"TOKEN": {"fn::secret": "hush"}},
        env={"BUCKET": '${stash.output["bucket"]}'},
        jobs={"worker": {"cpus": 0.5, "env": {"PLACE": "{job_name}:{task_index}"}}},
        restart={"maximum": 0},
        metrics={"loss": r"loss: (\S+)"},
        trainDir="runs",
    )
    up = project.up()

    said = project.log("worker-1").splitlines()[0]
    context, *others, train_dir = said.rsplit(maxsplit=5)
    assert context == '{"deep": {"layers": [1, 2]}, "rate": 0.5, "steps": 200}'
    assert others == ["hsuh", "worker:1", "b1", "b1"]
    assert Path(train_dir).is_relative_to(project.program / "infra" / "runs"), "relative to the program"
    assert project.outputs()["metrics"] == {"loss": 0.25}
    assert project.outputs()["exit_code"] == 0, "a nested output has the name of the schema"
    assert "hush" not in up.output
    assert not [path for path in project.folder.rglob("*.json") if b"hush" in path.read_bytes()]
    assert project.up().steps() == {"unchanged": 8}
    project.destroy()


def test_a_failed_run_fails_each_update_and_one_that_does_not_wait_records_it(yaml: Callable[..., Project]) -> None:
    project = yaml("print('fine')", restart={"maximum": 0})
    project.up()
    first = project.outputs()
    assert first["state"] == "succeeded"
    (project.program / "code" / "train.py").write_text("import sys\nprint('no luck')\nsys.exit(3)")
    after = {"type": "pulumi:index:Stash", "properties": {"input": "a"}, "options": {"dependsOn": ["${test}"]}}
    program = project.program / "Pulumi.yaml"
    program.write_text(program.read_text().replace("resources: {", f'resources: {{"after": {json.dumps(after)}, '))

    failed = project.up(fails=True)
    assert "error: test: the run failed: worker-0 failed (exit 3); changed code, " in failed.output
    assert "starts a new run. The stack's outputs are still those of the update" in failed.output
    assert "Traceback" not in failed.output
    assert "plugin.py" not in failed.output
    assert not [one for one in project.resources() if one["urn"].endswith("::after")]
    assert project.outputs() == first, "the outputs are those of the update before it, and `run` shows that"
    assert project.shown()["run"] != first["run"]
    (component,) = [one["outputs"] for one in project.resources() if one["type"] == "tfdeploy:index:TensorFlowCluster"]
    assert component["run"] == project.shown()["run"], "the state of the stack has the component's own outputs"

    assert "This update has started no run." in project.up(fails=True).output
    again = project.up(env={"TFDEPLOY_WAIT": "0"})
    assert again.steps() == {"created": 1, "unchanged": 6}, "with wait=0 it is created"
    assert "warning: test: the run failed: worker-0 failed (exit 3);" in again.output
    outputs = project.outputs()
    assert outputs["run"] == project.shown()["run"]
    assert outputs["state"] == "failed"
    assert outputs["logs"] == {"worker-0": ["no luck"]}
    assert project.statuses() == {"worker-0": "failed (exit 3)"}
    project.destroy()


def test_what_is_refused_is_refused_in_a_sentence(yaml: Callable[..., Project]) -> None:
    """A value, and an output of another resource."""
    for properties, created in (({"workers": -1}, 1), ({"stash": -1, "workers": "${stash.output}"}, 3)):
        refused = yaml("", **properties).up(fails=True)
        assert "test: workers: -1 is out of range. Use an integer from 0 to 1000." in refused.output
        assert "Traceback" not in refused.output
        assert "plugin.py" not in refused.output
        assert refused.touched() == set()
        assert refused.steps().get("created", 0) <= created, (
            "the stack alone, or with the others and the component itself"
        )


def test_ctrl_c_ends_the_waiting_and_not_the_training(yaml: Callable[..., Project]) -> None:
    project = yaml("import time\nprint('at work', flush=True)\ntime.sleep(10000)")
    up = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(lambda: project.places().record.exists() and "at work" in project.log("worker-0"), "training", 180)
    up.send_signal(signal.SIGINT)
    output, _ = up.communicate(timeout=120)
    assert up.returncode != 0, output
    project.until_running("worker-0")
    project.destroy()
