"""`tfdeploy restart`: start a task again, with or without its data, or restore what is lost."""

from typing import Annotated

import typer

from ...backends.base import access
from ...errors import SpecError
from .. import completion
from ..common import Hostname, Yes, ask_to_confirm, print_json, print_message, print_result
from ..select import ClusterQuery, select_existing_cluster
from .heal import heal


def restart(
    query: ClusterQuery,
    hostname: Annotated[
        str, typer.Argument(help="Task, such as worker-0.", show_default=False, autocompletion=completion.hostnames)
    ] = "",
    without_data: Annotated[
        bool,
        typer.Option("--without-data", help="Delete the volumes that only this task mounts.", show_default=False),
    ] = False,
    lost: Annotated[
        bool,
        typer.Option(
            "--lost", help="Restore the lost tasks, controllers and machines of the stack.", show_default=False
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what --lost would restore.", show_default=False)
    ] = False,
    yes: Yes = False,
) -> None:
    """Restart a task, or restore what is lost.

    A task stays on its machine and keeps its volumes and checkpoints; with --without-data its own volumes are deleted, and checkpoints
    remain. Other tasks are not restarted, and it does not count as a failure. The command first prints what happens to data, and asks.

    With --lost, what is lost is created again with the same settings. If the program or its configuration was edited since the last
    update, the command prints the edits and changes nothing: use `pulumi up`. If the run has ended, nothing is restored. The command
    does not wait for the run.
    """
    if lost:
        if hostname or without_data or query.cluster:
            raise SpecError(
                "--lost",
                "restores all that is lost of a stack",
                "Leave out the task, --cluster and --without-data, or --lost.",
            )
        heal(query, dry_run)
        return
    if dry_run:
        raise SpecError("--dry-run", "is for --lost", "Without it, the command asks before it restarts a task.")
    if not hostname:
        raise SpecError(
            "restart", "HOSTNAME is missing", "Name a task, such as worker-0, or restore what is lost: --lost."
        )
    _start_again(query, hostname, yes, without_data)


def replace(query: ClusterQuery, hostname: Hostname, yes: Yes = False) -> None:
    """Replace a task with a new one without its data.

    Volumes that only this task mounts are deleted; checkpoints remain. Other tasks are not restarted, and it does not count as a
    failure. The command first prints what happens to data, and asks.
    """
    _start_again(query, hostname, yes, replaces=True)


def _start_again(query: ClusterQuery, hostname: str, yes: bool, replaces: bool) -> None:
    cluster = select_existing_cluster(query).cluster
    task_access = access(cluster["backend"])
    effect = task_access.restart_effect(cluster, hostname, replaces)
    print_message(effect)
    ask_to_confirm(yes, "Continue?", SpecError("--yes", "cannot ask without a terminal", "Use --yes to continue."))
    (task_access.replace if replaces else task_access.restart)(cluster, hostname)
    if query.as_json:
        print_json({"hostname": hostname, "did": "replace" if replaces else "restart", "means": effect})
    else:
        print_result(f"{hostname} was {'replaced' if replaces else 'restarted'}.")
