"""A training on the machine of worker 0 that reads from tf.data service, of which all tasks are containers on the manager."""

import subprocess
from functools import partial
from pathlib import Path

from tests.data_service import TRAIN, epochs_in
from tests.ec2.project import Ec2Project
from tests.engine.images import tensorflow_packages
from tests.tensorflow_env import ONE_THREAD
from tests.waiting import until
from tfdeploy.backends.docker.labels import service_name

ELEMENTS = 1000
EVERYTHING = (ELEMENTS, ELEMENTS)
TASKS = ("ps-0", "worker-0", "data-dispatcher-0", "data-worker-0", "data-worker-1")
OUTPUT, PACKAGES = ".output", ".packages"
"""What the training prints, and TensorFlow, in the folder of the counters: all machines have it, and to read it costs nothing."""

PROGRAM = f"""\
import os, pathlib, signal, sys
if os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    signal.pause()
sys.stdout = pathlib.Path(os.environ["COUNTER"], "{OUTPUT}").open("w")
print(os.environ["TFDEPLOY_DATA_SERVICE"])
{TRAIN.read_text()}"""


def arguments(project: Ec2Project) -> str:
    """A cluster on the machines of one ps and one worker."""
    counter = project.folder / "counter"
    env = {"ELEMENTS": f"{ELEMENTS}", "MILLISECONDS": "8", "EPOCHS": "1000000", "PYTHONPATH": f"{counter / PACKAGES}"}
    jobs = {name: {"ec2": {"machine_count": 1}} for name in ("ps", "data_dispatcher", "data_worker")}
    return (
        f'command=["python", "train.py"], code="code", ps=1, workers=1, data_service={{"workers": 2}}, jobs={jobs}, '
        f'wait="0", ec2={{"spot": True}}, env={ {**ONE_THREAD, "COUNTER": f"{counter}", **env} }'
    )


def start(project: Ec2Project) -> None:
    """Start the cluster, with the TensorFlow of the tests."""
    copied_tensorflow(project.folder / "counter" / PACKAGES)
    project.write(arguments(project), PROGRAM)
    project.up()
    project.until_running(*TASKS)


def copied_tensorflow(folder: Path) -> None:
    """Have a folder with TensorFlow: links, and copies only where the file system has no links to another one."""
    copy, paths = ["cp", "--archive", "--no-target-directory"], [tensorflow_packages(), folder]
    linked = subprocess.run([*copy, "--link", *paths], stderr=subprocess.DEVNULL, check=False)
    if linked.returncode != 0:
        subprocess.run([*copy, "--remove-destination", *paths], check=True)


def output(project: Ec2Project) -> str:
    """What the training has printed."""
    path = project.folder / "counter" / OUTPUT
    return path.read_text() if path.exists() else ""


def next_epoch(project: Ec2Project) -> tuple[int, int]:
    """Wait for the end of the next epoch that begins; its elements, and its different elements."""
    number = len(epochs_in(output(project))) + 1
    return until(
        lambda: epochs_in(output(project)).get(number),
        f"the end of epoch {number}",
        seen=lambda: f"{output(project)[-1000:]}\n{project.look(50).view.logs}",
    )


def most_lost(project: Ec2Project) -> int:
    """How many elements an epoch has lost at most; none was visited twice."""
    epochs = epochs_in(output(project)).values()
    assert all(elements == different for elements, different in epochs), epochs
    return max(ELEMENTS - elements for elements, _ in epochs)


def journal_size(project: Ec2Project) -> int:
    """The bytes of the dispatcher's journal below the `train_dir` of the run."""
    files = project.box.efs(project.efs).glob("test-*/*/data_service/tf_data_dispatcher_journal/*")
    return sum(path.stat().st_size for path in files)


def kill(project: Ec2Project, machine: str, hostname: str) -> None:
    """Kill the container of a task, and wait until the task runs in another one."""
    run = partial(project.box.run, project.machine(machine).id, "docker")
    service = f"label=com.docker.swarm.service.name={service_name(project.cluster, hostname)}"
    listing = ("ps", "--quiet", f"--filter={service}")
    killed = run(*listing).split()
    run("kill", *killed)
    until(lambda: {*run(*listing).split()} - {*killed}, f"another container of {hostname}")
