"""Clusters to call the command on, and a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calling import ARGUMENTS, TRAIN, open_gate
from tests.integration.conftest import Project
from tests.waiting import until
from tfdeploy.agent.record.record import Record

TASKS = ("ps-0", "worker-0", "worker-1")


class Training(Project):
    """A project whose cluster trains until the gate is opened; several tests use it, one after the other."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "training")
        self.runs = 0

    def fresh(self) -> bool:
        """Whether the cluster is as a test needs it: registered, alone what `ARGUMENTS` say, with all tasks training."""
        record = self.places().record
        job = Record(record).current() if self.runs and record.exists() else None
        return (
            job is not None
            and {name: task.state for name, task in job.tasks.items()} == dict.fromkeys(TASKS, "running")
            and not self.gate.exists()
            and any((self.folder / "state/tfdeploy/registry").iterdir())
            and self.supervisor().running()
        )

    @property
    def gate(self) -> Path:
        """The file for which the workers wait."""
        return self.folder / "counter" / "gate"

    def renew(self) -> None:
        """Create the cluster; give it another run where it has had one."""
        self.gate.unlink(missing_ok=True)
        self.write(ARGUMENTS, TRAIN)
        if self.runs:
            self.set("tfdeploy:run_id", f"run {self.runs}")
            self.up("--refresh")
        else:
            self.init()
            self.up()
        self.runs += 1
        self.until_running(*TASKS)
        until(self._have_printed, "each task's first line")

    def _have_printed(self) -> bool:
        record = Record(self.places().record)
        run = record.current()
        return run is not None and all(record.log(run.spec.id, name).tail(1) for name in TASKS)


@pytest.fixture(scope="session")
def shared_training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    """One project for all tests that look at a training."""
    project = Training(tmp_path_factory.mktemp("cli") / "training")
    yield project
    open_gate(project)
    project.clean()


@pytest.fixture
def training(shared_training: Training) -> Training:
    """A cluster that trains; a new run only where the test before has changed or ended it."""
    if not shared_training.fresh():
        shared_training.renew()
    return shared_training
