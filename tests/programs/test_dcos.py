"""TensorFlow on DC/OS: a job from a URL, its options file, and what was done to a service that runs."""

import functools
import hashlib
import http.server
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http_server import serving
from tests.integration.conftest import ROOT
from tests.programs.program import Program
from tests.waiting import until
from tfdeploy.agent.model.events import TASK_STARTED
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.agent.record.record import Record

pytestmark = pytest.mark.full

TASKS = ("ps-0", "worker-0", "worker-1")
JOB = ROOT / "programs/dcos_mnist/service/mnist.py"
UTILS = "def greet(context):\n    print('context', sorted(context), flush=True)\n"
MAIN = """\
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "utils"))
import greetings, mnist

def main(server, log_dir, context):
    greetings.greet(context)
    about = server.server_def
    jobs = {job.name: len(job.tasks) for job in about.cluster.job}
    print("I am", about.job_name, about.task_index, "of", sorted(jobs.items()), flush=True)
    mnist.main(server, log_dir, context)
"""

Make = Callable[[str], Program]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address at which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with serving(handler) as port:
        yield folder, f"http://127.0.0.1:{port}"


def options(program: Program, **sections: Any) -> None:
    """`pulumi config set options "$(cat options.json)"`."""
    program.set("options", json.dumps(sections))


def change(program: Program, path: str, value: Any) -> str:
    """Change one option of a service that runs; what the preview said of it."""
    program.set(f"options.{path}", str(value), "--path")
    said = program.call("preview", "--stack", program.stack).output
    program.up()
    return said


def begun(program: Program, hostname: str) -> list[int]:
    """The steps at which a task has begun, once for each attempt."""
    found = re.findall(r"^began at step (\d+)", program.log(hostname, "mnist"), re.MULTILINE)
    return [int(step) for step in found]


def present(program: Program) -> tuple[Record, RunSpec]:
    """The record, and the present run."""
    record = Record(program.places("mnist").record)
    job = record.current()
    assert job is not None
    return record, job.spec


def test_a_job_is_fetched_and_run_as_its_options_file_says(programs: Make, served: tuple[Path, str]) -> None:
    folder, address = served
    with zipfile.ZipFile(folder / "my_job.zip", "w") as archive:
        archive.writestr("my_job/training/train_model.py", MAIN)
        archive.writestr("my_job/training/mnist.py", JOB.read_text())
        archive.writestr("my_job/utils/greetings.py", UTILS)
    digest = hashlib.sha256((folder / "my_job.zip").read_bytes()).hexdigest()
    program = programs("dcos_mnist")
    options(
        program,
        service={
            "name": "two-workers",
            "job_url": f"{address}/my_job.zip",
            "job_sha256": digest,
            "job_path": "my_job/training",
            "job_name": "train_model",
            "job_context": json.dumps({"learning_rate": 0.4, "num_training_steps": 200}),
            "shared_filesystem": str(folder),
        },
        gpu_worker={"count": 1, "gpus": 0, "mem": 4096},
        worker={"count": 1, "cpus": 0.5, "mem": 4096},
        parameter_server={"count": 1, "mem": 4096},
    )
    program.up()
    assert program.outputs()["accuracy"] > 0.8
    assert program.outputs()["state"] == "succeeded"
    for index, hostname in enumerate(("worker-0", "gpu-worker-0")):
        lines = program.log(hostname, "two-workers")
        assert "context ['learning_rate', 'num_training_steps']" in lines
        assert f"I am worker {index} of [('ps', 1), ('worker', 2)]" in lines
        assert "began at step " in lines
    assert [*folder.rglob("checkpoint")], "log_dir is in shared_filesystem"
    program.destroy()
    assert [*folder.rglob("checkpoint")], "uninstall leaves the shared file system alone"


def test_a_job_that_cannot_be_had_fails_at_once_and_says_why(programs: Make, served: tuple[Path, str]) -> None:
    program = programs("dcos_mnist")
    options(program, service={"job_url": f"{served[1]}/none.py"}, worker={"count": 1}, parameter_server={"count": 0})
    said = program.up(fails=True).output
    assert "worker-0 failed (exit 78)" in said
    assert "none.py: 404" in "\n".join(program.outputs()["logs"]["worker-0"])
    program.destroy()


def test_a_service_is_changed_while_it_runs_and_resumes(programs: Make) -> None:
    program = programs("dcos_mnist")
    program.configure(wait="0")
    context = {"num_training_steps": 1_000_000, "seconds_per_step": 0.1, "save_steps": 5}
    program.set("options.service.job_context", json.dumps(context), "--path")
    program.set("options.worker.count", "1", "--path")
    program.up()
    _, run = present(program)
    until(lambda: [*Path(run.train_dir).glob("model.ckpt-*.index")][2:], "checkpoints")

    said = change(program, "worker.count", 2)
    assert re.search(r"\+ worker-1 +\(all tasks restart with the new host lists\)", said), said
    until(lambda: begun(program, "worker-1"), "worker-1 trains too")
    until(lambda: len(begun(program, "worker-0")) == 2, "worker-0 trains again")
    assert begun(program, "worker-0")[1] > 5, "it resumes from the last checkpoint"

    program.child("worker-0", "mnist").kill()
    until(lambda: len(begun(program, "worker-0")) == 3, "worker-0 is restarted by itself")
    assert_rolls_in_order(program)

    said = change(program, "worker.count", 1)
    assert re.search(r"- worker-1 +\(all tasks restart with the new host lists\)", said), said
    until(lambda: len(begun(program, "worker-0")) == 5, "worker-0 goes on alone")
    steps = begun(program, "worker-0")
    assert steps == sorted(steps), "each time from the last checkpoint"
    assert list(program.statuses()) == ["ps-0", "worker-0"]
    program.destroy()


def assert_rolls_in_order(program: Program) -> None:
    """A change of the workers' memory restarts worker-0 and, when that one runs again, worker-1; the ps is left alone."""
    change(program, "worker.mem", 2048)
    until(lambda: len(begun(program, "worker-1")) == 2, "the change has reached worker-1")
    record, run = present(program)
    happened = [(event.kind, event.task) for event in record.events(run.id)]
    last = {name: max(i for i, event in enumerate(happened) if event == (TASK_STARTED, name)) for name in TASKS}
    assert last["ps-0"] < last["worker-0"] < last["worker-1"], happened
    before = max(i for i, event in enumerate(happened[: last["worker-0"]]) if event == (TASK_STARTED, "worker-0"))
    between = happened[before + 1 : last["worker-0"]]
    assert not any(task in ("worker-1", "ps-0") for _, task in between), happened
