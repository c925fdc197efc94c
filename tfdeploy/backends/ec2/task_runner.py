"""Tasks on a Swarm of the cluster's own machines: docker's task runner, and what ends with the machines."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

from ...agent.record.record import ViewRequest
from ...agent.run_spec import RunSpec
from ...errors import BackendError, SpecError
from ..base import GONE, ClusterRef, MachineProvider, ObservedState, Retain, RunOutputs, RunProps
from ..docker.engine.controller_client import ControllerClient
from ..docker.run_mover import DockerRunMover
from ..docker.task_runner import DockerTaskRunner
from ..record_copy import RecordCopy
from . import record_bucket
from .aws import account
from .machine import ssh
from .price import costs


class Ec2TaskRunner:
    """The contract is `backends.base.TaskRunner`."""

    def __init__(self, machine_provider: MachineProvider) -> None:
        self._machine_provider = machine_provider
        self._docker = DockerTaskRunner(machine_provider.observe, ssh.engine)
        self._previewed = DockerTaskRunner(partial(machine_provider.observe, is_preview=True), ssh.engine)
        self.mover = DockerRunMover(self._docker)
        self.create_task = self._docker.create_task
        self.update_task = self._docker.update_task
        self.delete_task = self._docker.delete_task
        self.task_exists = self._docker.task_exists
        self.delete_unlisted = self._docker.delete_unlisted
        self.build_image = self._docker.build_image
        self.has_image = self._docker.has_image

    def submit_run(self, props: RunProps) -> RunOutputs:
        """As on `docker`; a run with a budget gets what the machines have cost, and what they cost per hour."""
        if RunSpec.from_dict(props["run"]).budget:
            props = {**props, "run": {**props["run"], **self._cost(props["cluster"])}}
        return self._docker.submit_run(props)

    def _cost(self, cluster: ClusterRef) -> dict[str, float]:
        """What the controller counts against the budget.

        Raises:
            BackendError: EC2 does not respond.
        """
        with account.of(cluster):
            problems = self._machine_provider.observe(cluster).problems
        if problems:
            raise BackendError(f"{cluster['name']}: ec2.budget: the cost is not known: {'; '.join(problems)}")
        return costs.for_run(cluster)

    def run_is_current(self, props: RunProps) -> bool:
        """As on `docker`; a refresh with another account fails."""
        account.verify(props["cluster"])
        return self._docker.run_is_current(props)

    def stop_run(self, props: RunProps) -> None:
        """Stop the run, and copy the whole record to this computer, because the machines are deleted next."""
        cluster = props["cluster"]
        account.verify(cluster)
        self._docker.stop_run(props)
        RecordCopy(cluster).download(ControllerClient(ssh.engine(cluster), cluster))

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        """Delete the machines, and with them the tasks."""
        with account.of(cluster):
            retained = self._machine_provider.delete_all(cluster, retain)
        return "; ".join(filter(None, [RecordCopy(cluster).retire(), retained]))

    def observe(self, cluster: ClusterRef, token: str, query: ViewRequest, is_preview: bool = False) -> ObservedState:
        """As on `docker`; where no machine is left, from the record that the machines put into the bucket, but for a preview."""
        with account.of(cluster):
            if is_preview:
                return self._previewed.observe(cluster, token, query, is_preview)
            return self._observe(cluster, token, query)

    def _observe(self, cluster: ClusterRef, token: str, query: ViewRequest) -> ObservedState:
        with suppress(BackendError, SpecError):  # the observation reports it
            account.store(cluster)
        state = self._docker.observe(cluster, token, query)
        if state.controller_silent_since is None or any(status != GONE for status in state.machines.statuses.values()):
            return state
        try:
            changed = record_bucket.download(cluster)
        except (BackendError, SpecError) as error:
            return replace(state, problems=[*state.problems, str(error)])
        return self._docker.observe(cluster, token, query) if changed else state
