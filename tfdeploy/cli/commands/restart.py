"""`tfdeploy restart`: start a task again, with or without its data, or restore what is lost."""

from collections.abc import Sequence
from pathlib import Path

from ...backends.backend import access, load
from ...errors import BackendError, CommandError, NotFound, SpecError
from ...registry import login
from ...units import counted, moment
from ..cluster_selection import ClusterQuery, select_clusters, select_existing_cluster
from ..output import ask_to_confirm, print_answer, print_message, print_result
from ..parser import Parser, add_yes
from ..pulumi import error_of, is_locked, locked_error, preview, stream_pulumi
from ..restore_plan import RestorePlan, restore_plan
from ..snapshot import take_snapshot

_REFRESH = "--refresh"


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    parser.add_argument("hostname", nargs="?", default="", metavar="HOSTNAME", help="Task, such as worker-0.")
    without_data = "Delete the volumes that only this task mounts."
    parser.add_argument("--without-data", action="store_true", help=without_data)
    lost = "Restore the lost tasks, controllers and machines of the stack; with a machine, start its tasks on others."
    parser.add_argument("--lost", action="store_true", help=lost)
    parser.add_argument("--dry-run", action="store_true", help="Only print what --lost would restore.")
    add_yes(parser)


def restart(
    query: ClusterQuery,
    hostname: str = "",
    without_data: bool = False,
    lost: bool = False,
    dry_run: bool = False,
    yes: bool = False,
) -> None:
    """Restart a task, or restore what is lost.

    A task stays on its machine and keeps its volumes and checkpoints; with --without-data its own volumes are deleted, and checkpoints
    remain. Other tasks are not restarted, and it does not count as a failure. The command first prints what happens to data, and asks.

    With --lost, what is lost is created again with the same settings. If the program or its configuration was edited since the last
    update, the command prints the edits and changes nothing: use `pulumi up`. If the run has ended, nothing is restored. The command
    does not wait for the run.

    With --lost MACHINE, on Docker, you confirm that a machine which does not respond is off for good. The command first prints what you
    promise with that, and asks. Then the machine is removed from the Swarm, and its tasks start on other machines.
    """
    if lost:
        if without_data or query.cluster:
            raise SpecError(
                "--lost", "restores all that is lost of a stack", "Leave out --cluster and --without-data, or --lost."
            )
        _restore(query, dry_run, yes, hostname)
        return
    if dry_run:
        raise SpecError("--dry-run", "is for --lost", "Without it, the command asks before it restarts a task.")
    if not hostname:
        raise SpecError(
            "restart", "HOSTNAME is missing", "Name a task, such as worker-0, or restore what is lost: --lost."
        )
    _start_again(query, hostname, yes, without_data)


def _start_again(query: ClusterQuery, hostname: str, yes: bool, replaces: bool) -> None:
    cluster = select_existing_cluster(query).cluster
    task_access = access(cluster["backend"])
    effect = task_access.restart_effect(cluster, hostname, replaces)
    print_message(effect)
    ask_to_confirm(yes, "Continue?")
    task_access.restart(cluster, hostname, replaces)
    document = {"hostname": hostname, "did": "replace" if replaces else "restart", "means": effect}
    print_answer(query.as_json, document, f"{hostname} was {'replaced' if replaces else 'restarted'}.")


def _restore(query: ClusterQuery, dry_run: bool, yes: bool, machine: str) -> None:
    """Restore what is lost of a stack, after the user has confirmed that `machine` is. Pulumi does it; this checks before that it would
    do nothing else."""
    entries = select_clusters(query)
    for entry in entries:
        if entry.ended:
            raise NotFound(f"{entry.title} was destroyed at {moment(entry.ended)}. `pulumi up` creates it again.")
    first = entries[0]
    title = f"{first.cluster['project']}/{first.cluster['stack']}"
    if all(take_snapshot(entry).report.decided for entry in entries):
        _print_restored(query, [], f"{title}: the run has ended, so nothing is restored.")
        return
    folder, stack = Path(first.folder), first.cluster["stack"]
    if is_locked(first.cluster["project"], stack, login()):
        raise locked_error(stack)
    if machine:
        effect = access(first.cluster["backend"]).lost_effect(first.cluster, machine)
        if dry_run:
            _print_restored(query, [], f"Would ask: {effect}")
            return
        print_message(effect)
        ask_to_confirm(yes, "Continue?")
        access(first.cluster["backend"]).confirm_lost(first.cluster, machine)
    refresh = any(_REFRESH in load(entry.cluster["backend"]).restore_command for entry in entries)
    plan = restore_plan(preview(folder, stack, refresh), machine)
    _refuse_edits(title, plan)
    names = ", ".join(plan.restored)
    if not plan.restored:
        _print_restored(query, [], f"{title}: nothing is lost.")
    elif dry_run:
        _print_restored(query, plan.restored, f"{title}: would restore {names}.")
    else:
        _update(query, folder, stack, refresh)
        _print_restored(query, plan.restored, f"{title}: restored {counted(len(plan.restored), 'resource')}: {names}.")


def _refuse_edits(title: str, plan: RestorePlan) -> None:
    if plan.edits:
        wrong = f"an update would do more than restore: {'; '.join(plan.edits)}"
        raise SpecError(title, wrong, "Run `pulumi up` to apply these edits too, or undo them.")


def _update(query: ClusterQuery, folder: Path, stack: str, refresh: bool) -> None:
    arguments = ["up", "--yes", "--skip-preview", "--stack", stack, *([_REFRESH] if refresh else [])]
    print_line = print_message if query.as_json else print_result
    exit_code, lines = stream_pulumi(folder, arguments, print_line, TFDEPLOY_WAIT="0")
    if exit_code:
        error = error_of(stack, folder, exit_code, lines)
        if isinstance(error, CommandError) and not query.as_json:  # its lines are on the screen
            error = BackendError(f"{stack}: `pulumi up` failed with exit code {exit_code}; see its output above.")
        raise error


def _print_restored(query: ClusterQuery, restored: Sequence[str], message: str) -> None:
    print_answer(query.as_json, {"restored": list(restored), "message": message}, message)
