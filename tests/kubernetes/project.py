"""A Pulumi project whose cluster is in a namespace of a Kubernetes, driven as a user drives it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.integration.conftest import Call, Project, imported
from tests.waiting import until
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.backends.base import ClusterRef, ObservedState
from tfdeploy.backends.kubernetes.api import ApiServer
from tfdeploy.backends.kubernetes.backend import BACKEND
from tfdeploy.backends.kubernetes.cluster_objects import KINDS, ClusterObjects
from tfdeploy.errors import BackendError

STORAGE_CLASS = "folders"


class KubernetesProject(Project):
    """The arguments that a test gives are for any backend; what is Kubernetes' is added here."""

    modules = (*imported("kubernetes", "resources"), "kubernetes")

    def __init__(self, folder: Path, kubeconfig: Path, image: str) -> None:
        super().__init__(folder)
        self.image = image
        self.env["KUBECONFIG"] = str(kubeconfig)

    def write(self, arguments: str, *rest: str) -> None:
        """Write the Pulumi program and what its tasks run."""
        counter = self.folder / "counter"
        counter.chmod(0o777)
        container = (
            f"container={{'image': {self.image!r}, 'volumes': ['{counter}:{counter}'], 'retain_volumes': False}}"
        )
        group = f"kubernetes={{'storage_class': {STORAGE_CLASS!r}}}"
        super().write(f'backend="kubernetes", {container}, {group}, {arguments}', *rest)

    @property
    def cluster(self) -> ClusterRef:
        """The handle of the project's cluster."""
        return self.ref("test")

    @property
    def objects(self) -> ClusterObjects:
        """What it has in its namespace."""
        return ClusterObjects(ApiServer(self.cluster["home"]), self.cluster)

    def look(self, log_lines: int = 0) -> ObservedState:
        """One observation, without Pulumi, to which the controller has responded."""

        def answered() -> ObservedState | None:
            observed = BACKEND.runner.observe(self.cluster, "", ViewRequest(log_lines))
            return observed if observed.controller_silent_since is None else None

        return until(answered, "the controller answers", seen=self._pods)

    def job(self) -> RunState:
        """The run as it is now."""
        run = self.look().view.run_state
        assert run is not None
        return run

    def until_running(self, *hostnames: str) -> None:
        """Wait until an observation has these tasks as running."""

        def running() -> bool:
            run = BACKEND.runner.observe(self.cluster, "", ViewRequest()).view.run_state
            tasks = run.tasks if run else {}
            return all(name in tasks and tasks[name].state == "running" for name in hostnames)

        until(running, f"{hostnames} running", seen=self._pods)

    def _pods(self) -> str:
        """What Kubernetes knows of the tasks."""
        with suppress(BackendError):
            return "\n".join(f"{name}: {task}" for name, task in self.objects.tasks().items())
        return "the API server does not respond"

    def left(self) -> dict[str, list[str]]:
        """What has the label of the project's clusters, by kind."""
        left: dict[str, Any] = {}
        for ref in self.refs():
            objects = ClusterObjects(ApiServer(ref["home"]), ref)
            for kind in KINDS:
                left.setdefault(kind, []).extend(item["metadata"]["name"] for item in objects.list(kind))
        return {kind: names for kind, names in left.items() if names}

    def assert_nothing_left(self) -> None:
        """Nothing in the namespace has the project's label."""
        until(lambda: not self.left(), "nothing is left", seen=lambda: str(self.left()))

    def destroy(self) -> Call:
        """`pulumi destroy`, which must succeed and leave nothing."""
        done = self.call("destroy", "--yes", "--skip-preview", "--stack", self.stack)
        assert done.exit_code == 0, done.output
        self.assert_nothing_left()
        return done

    def counts(self) -> dict[str, int]:
        """How often each task's program was started; 0 while it writes that down."""
        files = [path for path in (self.folder / "counter").iterdir() if path.name[0] != "."]
        return {path.name: int(path.read_text() or 0) for path in files}

    def clean(self) -> None:
        """Remove what the test left, without Pulumi."""
        for ref in self.refs():
            with suppress(BackendError):
                BACKEND.runner.delete_all(ref, "", {"volumes": False, "record": False})
