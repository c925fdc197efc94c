"""A change of a running job goes through its tasks one at a time, and stops at one that does not come up."""

from pathlib import Path

from tests.docker.project import GATED, DockerProject
from tests.engine.cli import LABEL
from tfdeploy.agent.model.events import TASK_INTERRUPTED, TASK_STARTED

JOB = (
    'command=["python", "train.py"], code="code", workers=3, wait="0", restart={"on": ["any"], "maximum": 100}, '
    'env={"COUNTER": __import__("os").environ["COUNTER"]}'
)
FORMER = "/former"
NEEDS_FORMER = f"import os\nos.stat({FORMER!r})\n{GATED}"
"""It does not run with the settings of the run after it."""
RESIZED = '"cpus": 0.4, "memory": "256MiB"'
WORKERS = ["worker-0", "worker-1", "worker-2"]

IMPATIENT = """\
import sys
if "pulumi.dynamic" in " ".join(sys.orig_argv):
    import tfdeploy.backends.rolling_update
    tfdeploy.backends.rolling_update._START_TIMEOUT = 5.0
"""
"""In the process that runs the providers, as a `sitecustomize`: a task that does not come up is given up sooner."""

CGROUPS = """\
from pathlib import Path
root = Path("/sys/fs/cgroup")
if (root / "cpu.max").exists():
    quota, period = (root / "cpu.max").read_text().split()
    memory = (root / "memory.max").read_text()
else:
    quota, period = ((root / "cpu" / f"cpu.cfs_{part}_us").read_text() for part in ("quota", "period"))
    memory = (root / "memory" / "memory.limit_in_bytes").read_text()
print(int(quota) / int(period), int(memory))
"""
"""What the kernel lets the container have in which it runs: processors and memory."""


def limits(project: DockerProject, hostname: str) -> tuple[float, int]:
    """The limits of a task's container, as the kernel keeps them: processors, and bytes of memory."""
    cpus, memory = project.inside(hostname, "python", "-c", CGROUPS).split()
    return float(cpus), int(memory)


def images(project: DockerProject) -> list[str]:
    """The image of each worker."""
    form = "{{.Spec.TaskTemplate.ContainerSpec.Image}}"
    return project.docker("service", "inspect", "--format", form, *map(project.service, WORKERS)).split()


def broken_image(project: DockerProject, folder: Path) -> str:
    """An image in which nothing can be started."""
    tar, name = folder / "nothing.tar", f"{project.name}:broken"
    tar.write_bytes(bytes(10240))
    project.docker("import", "--change", f"LABEL {LABEL}=broken", str(tar), name)
    return name


def assert_one_after_the_other(project: DockerProject) -> None:
    """Each worker was started again before the next one was interrupted."""
    events = project.events()
    order = [
        events.index(event) for name in WORKERS for event in ((TASK_INTERRUPTED, name, 0), (TASK_STARTED, name, 2))
    ]
    assert order == sorted(order), events


def test_a_change_rolls_through_the_tasks_and_stops_where_one_does_not_come_up(
    project: DockerProject, tmp_path: Path
) -> None:
    volumes = f'"volumes": ["{project.folder / "counter"}:{FORMER}"]'

    def write(limits: str, container: str = "", program: str = NEEDS_FORMER) -> None:
        project.write(f'{JOB}, jobs={{"worker": {{{limits}, "container": {{{container}}}}}}}', program)

    write('"cpus": 0.2, "memory": "128MiB"', volumes)
    project.up()
    project.until_running(*WORKERS)
    assert limits(project, "worker-0") == (0.2, 128 << 20)
    write(RESIZED, volumes)
    assert project.up().touched() == {f"test-{name}" for name in WORKERS}
    assert_one_after_the_other(project)
    for name in WORKERS:
        assert limits(project, name) == (0.4, 256 << 20)
    project.until_counts(dict.fromkeys(WORKERS, 2))

    image = broken_image(project, tmp_path)
    try:
        write(RESIZED, f'{volumes}, "image": {image!r}')
        done = project.up(fails=True, env=project.customize_python(IMPATIENT))
        assert "worker-0 did not start again with its new settings: " in done.output
        assert 'exec: "python3": executable file not found' in done.output
        for name in WORKERS[1:]:
            assert f"{name} keeps its old settings, because worker-0 did not start with its new settings" in done.output
        assert images(project)[1:] == [project.image, project.image]
        # worker-0 was put back, and comes up in its own time.
        assert [project.counts()[name] for name in WORKERS[1:]] == [2, 2]
        assert [project.sees()[name] for name in WORKERS[1:]] == ["running", "running"]

        write(RESIZED, volumes)
        project.up()
        project.until_running(*WORKERS)
        assert images(project) == [project.image] * 3
        project.until_counts({"worker-0": 3, "worker-1": 2, "worker-2": 2})

        write(RESIZED, program=f"{GATED}# not as before")
        assert project.up().touched() == {*(f"test-{name}" for name in WORKERS), "test-run"}
        project.until_running(*WORKERS)
    finally:
        project.docker("service", "rm", *map(project.service, WORKERS))
        project.docker("image", "rm", "--force", image)
