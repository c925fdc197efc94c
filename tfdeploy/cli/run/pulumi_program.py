"""The program of `tfdeploy run`, which Pulumi runs on the stack of a call."""

import json
from functools import partial

import pulumi

from ...cluster import TensorFlowCluster
from ...errors import SpecError
from ...program.announcements import also_warn
from ...report.update_exit_code import ignore_failed_runs
from .cluster_arguments import CLUSTER
from .stack import REFUSAL, WARNINGS, Call, stored_call


def declare_cluster() -> None:
    """Declare the cluster of this stack's call. The caller gets its warnings, and why it was refused.

    Raises:
        pulumi.RunError: it was refused.
    """
    call = stored_call(pulumi.get_stack())
    ignore_failed_runs()
    also_warn(partial(_store_warning, call))
    try:
        TensorFlowCluster(CLUSTER, call.args)  # type: ignore[arg-type]
    except pulumi.RunError as error:
        cause = error.__context__
        refusal = [cause.where, cause.wrong, cause.remedy] if isinstance(cause, SpecError) else [str(error)]
        call.file(REFUSAL).write_text(json.dumps(refusal))
        raise


def _store_warning(call: Call, text: str) -> None:
    with call.file(WARNINGS).open("a") as file:
        file.write(f"{text.splitlines()[0]}\n")
