"""A Pulumi project on the toy backend."""

import os
from pathlib import Path

from tests.integration.conftest import COUNTER, PROGRAM, ROOT, Project, imported
from tests.pulumi_python import forked_python
from tests.toy_backend.backend import BACKEND, discover
from tests.waiting import until
from tfdeploy.agent.record.record import Record

PATH = os.pathsep.join((str(Path(__file__).with_name("site")), str(ROOT)))


def toys() -> dict[str, str]:
    """The environment variables by which Pulumi's programs know the toy backend."""
    modules = (*imported("local"), "tests.toy_backend.backend")
    return {"PYTHONPATH": PATH, "PULUMI_PYTHON_CMD": str(forked_python(*modules, path=PATH))}


class ToyProject(Project):
    """A project whose processes know the toy backend."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.env |= toys()

    def write(self, arguments: str, script: str = COUNTER, program: str = PROGRAM) -> None:
        super().write(f'backend="toy", {arguments}', script, program)

    def until_running(self, *hostnames: str) -> None:
        """Wait until the record has these tasks as running."""

        def running() -> bool:
            folder = Path(self.ref()["home"]) / "record"
            run = Record(folder).current() if folder.exists() else None
            tasks = run.tasks if run else {}
            return all(name in tasks and tasks[name].state == "running" for name in hostnames)

        until(running, f"{hostnames} running")

    def assert_nothing_left(self) -> None:
        """No folder of a cluster is left."""
        toys = self.folder / "state/tfdeploy/toys"
        assert not toys.exists() or list(toys.iterdir()) == []

    def clean(self) -> None:
        """Remove what the test left, without Pulumi."""
        for cluster in discover():
            BACKEND.runner.delete_all(cluster.cluster, "", {"volumes": False, "record": False})
