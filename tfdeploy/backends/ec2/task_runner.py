"""Tasks on a Swarm of the cluster's own machines: docker's task runner, and what ends with the machines."""

import math
import time
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from ...agent.model.run_state import UNKNOWN, RunState
from ...agent.record.record import ViewRequest
from ...errors import BackendError, SpecError
from ..base import GONE, NOT_CREATED, ClusterRef, MachineProvider, ObservedMachines, ObservedState, Retain, RunProps
from ..docker.engine.controller_client import ControllerClient
from ..docker.task_runner import DockerTaskRunner
from ..move_checks import StoppedRun
from ..record_copy import RecordCopy
from . import costs, record_bucket
from .aws import account
from .machine import ssh

CHECK_SECONDS = 60.0
"""An observation asks so often whether the bucket still has the record."""


class Ec2TaskRunner(DockerTaskRunner):
    """The contract is `backends.base.TaskRunner`."""

    unreachable_remedy: ClassVar[str] = (
        "`pulumi up` creates machines that do not exist. Of one that runs, check whether `ec2.ssh_cidrs` allows this computer."
    )

    def __init__(self, machine_provider: MachineProvider) -> None:
        super().__init__(machine_provider.observe, ssh.engine)
        self._machine_provider = machine_provider
        self._checked: dict[str, tuple[float, str]] = {}

    def run_is_current(self, props: RunProps) -> bool:
        """As on `docker`; a refresh with another account fails."""
        account.verify(props["cluster"])
        return super().run_is_current(props)

    def stop_run(self, props: RunProps) -> None:
        """Stop the run, and copy the whole record to this computer, because the machines are deleted next."""
        cluster = props["cluster"]
        account.verify(cluster)
        super().stop_run(props)
        RecordCopy(cluster).download(ControllerClient(ssh.engine(cluster), cluster))

    def stop_to_move(self, cluster: ClusterRef) -> StoppedRun:
        """As on `docker`. Where the machines have terminated themselves, their record is in the bucket, and the run has ended."""
        with account.of(cluster):
            stopped = super().stop_to_move(cluster)
            if not stopped.is_current:
                with suppress(BackendError, SpecError):
                    record_bucket.download(cluster)
            return stopped

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        """Delete the machines, and with them the tasks."""
        with account.of(cluster):
            retained = self._machine_provider.delete_all(cluster, retain)
        return "; ".join(filter(None, [RecordCopy(cluster).retire(retain), retained]))

    def observe(self, cluster: ClusterRef, token: str, query: ViewRequest, is_preview: bool = False) -> ObservedState:
        """As on `docker`, with the cost; where the manager's machine is gone, from the record that it put into the bucket, but for a
        preview."""
        state = self._observe(cluster, token, query, is_preview)
        run, silent_since = state.view.run_state, state.controller_silent_since
        now = state.view.at if silent_since is None else silent_since
        exist = any(status != GONE for status in state.machines.statuses.values()) or state.machines.others == UNKNOWN
        return replace(state, cost=costs.observed_cost(run, now, exist))

    def _observe(self, cluster: ClusterRef, token: str, query: ViewRequest, is_preview: bool) -> ObservedState:
        with account.of(cluster):
            if not is_preview:
                with suppress(BackendError, SpecError):  # the observation reports it
                    account.store(cluster)
            state = super().observe(cluster, token, query, is_preview)
            manager = ssh.read(cluster).manager  # not known on every computer
            statuses = [state.machines.status(manager)] if manager else state.machines.statuses.values()
            is_gone = all(status == GONE for status in statuses)
            if is_preview:  # of a run that only the bucket has nothing is known
                return replace(state, machines=_named_machines(cluster, state)) if state.view.run_state else state
            if state.controller_silent_since is not None and is_gone:
                try:
                    changed = record_bucket.download(cluster)
                except (BackendError, SpecError) as error:
                    return replace(state, problems=[*state.problems, str(error)])
                state = super().observe(cluster, token, query) if changed else state
                state = replace(state, problems=_reasons(state.view.run_state) or state.problems)
            return replace(state, machines=_named_machines(cluster, state), not_stored=self._not_stored(cluster, state))

    def _not_stored(self, cluster: ClusterRef, state: ObservedState) -> str:
        """Why the record is lost with the machines, and what to do. The bucket is asked once in `CHECK_SECONDS`."""
        run = state.view.run_state
        if run is None:
            return ""
        if run.upload_problem and state.controller_silent_since is None:
            return record_bucket.not_uploaded(cluster, run.upload_problem)
        at, text = self._checked.get(cluster["id"], (-math.inf, ""))
        if time.monotonic() - at >= CHECK_SECONDS:
            text = ""
            with suppress(BackendError, SpecError):
                text = record_bucket.missing(cluster)
            self._checked[cluster["id"]] = time.monotonic(), text
        return f"The record in S3 is not complete: {text}. {record_bucket.REMEDY}" if text else ""


def _named_machines(cluster: ClusterRef, state: ObservedState) -> ObservedMachines:
    """The machines. One that does not exist was never created, unless a task was on it, this computer has reached it, or its boot has
    failed."""
    machines, run = state.machines, state.view.run_state
    if machines.others != GONE:
        return machines
    used = [task.report.machine for task in run.tasks.values() if task.report.machine] if run else []
    gone = dict.fromkeys([*used, *ssh.read(cluster).hosts, *machines.failures], GONE)
    return machines._replace(statuses={**gone, **machines.statuses}, others=NOT_CREATED)


def _reasons(run: RunState | None) -> list[str]:
    """Why machines have ended, as their tasks were told before."""
    tasks = run.tasks.values() if run else ()
    return list(dict.fromkeys(task.reason for task in tasks if task.machine_ends and task.reason))
