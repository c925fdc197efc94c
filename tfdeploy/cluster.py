"""The component `TensorFlowCluster`: its arguments and its outputs."""

from operator import attrgetter
from typing import Any, Unpack

import pulumi

from .args import TensorFlowClusterArgs
from .outputs import ArtifactRow, CostSummary, MachineRow, TaskRow

TYPE = "tfdeploy:index:TensorFlowCluster"

_OUTPUTS = (
    "status",
    "tasks",
    "machines",
    "state",
    "run",
    "logs",
    "metrics",
    "endpoints",
    "train_dir",
    "artifacts",
    "cost",
)
"""The outputs that are registered. `observed_at` is not: it would show a difference in each update of a run that is over."""


class TensorFlowCluster(pulumi.ComponentResource):
    """A TensorFlow cluster: parameter servers and workers with each other's addresses, and the training that they run.

    `pulumi up` creates the cluster, waits for the end of the run for at most `wait`, and fails if the run fails; the outputs are
    recorded all the same. A further `up` does not train again, and fails again after a failed run, unless command, code, environment,
    requirements, image, `data_dir` or `run_id` have changed; files below `data_dir` do not count. See `TensorFlowClusterArgs` for
    the arguments; pass them one by one or in `args`.

    Raises:
        pulumi.RunError: an argument is refused. Nothing has been created then.
    """

    status: pulumi.Output[str]
    """The machines and the tasks as two tables, and the state of the run."""

    tasks: pulumi.Output[list[TaskRow]]
    """The tasks."""

    machines: pulumi.Output[list[MachineRow]]
    """The machines."""

    state: pulumi.Output[str]
    """The state of the run: starting, running, succeeded, failed, stopped or unknown."""

    run: pulumi.Output[str]
    """The id of the run that the outputs are of, as in `tfdeploy status`. After an update that failed in a language other than Python
    the outputs are those of the update before it."""

    logs: pulumi.Output[dict[str, list[str]]]
    """The last `log_lines` lines of each task, by hostname."""

    metrics: pulumi.Output[dict[str, Any]]
    """The last match of each pattern of `metrics`: a number, or else a text; None while nothing matches."""

    endpoints: pulumi.Output[dict[str, str]]
    """The address of each task, by hostname: host:port. After the run only of tasks that have not ended, such as TensorBoard."""

    train_dir: pulumi.Output[str]
    """The folder of the run in `train_dir`, as its tasks have it: a folder of their machine or container, or a URL."""

    artifacts: pulumi.Output[list[ArtifactRow]]
    """What was stored of `train_dir` when the run ended: models, the newest checkpoint and weights, or what `artifacts` names."""

    cost: pulumi.Output[CostSummary]
    """The cost of the machines on `ec2`; empty on other backends."""

    observed_at: pulumi.Output[str]
    """When this was observed (UTC)."""

    def __init__(
        self,
        name: str,
        args: TensorFlowClusterArgs = {},  # noqa: B006
        opts: pulumi.ResourceOptions | None = None,
        **kwargs: Unpack[TensorFlowClusterArgs],
    ) -> None:
        from .program.registration import prepared, refuse_misplaced, register

        refuse_misplaced(name, args, opts)
        prepared_cluster = prepared(TYPE, name, {**(args or {}), **kwargs}, opts)
        super().__init__(TYPE, name, {}, opts)
        report = register(self, prepared_cluster)
        for output in (*_OUTPUTS, "observed_at"):
            setattr(self, output, report.apply(attrgetter(output)))
        self.register_outputs({output: getattr(self, output) for output in _OUTPUTS})
