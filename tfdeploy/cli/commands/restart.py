"""`tfdeploy restart` and `tfdeploy replace`: start a task again."""

from ...backends.base import access
from ...errors import SpecError
from ..common import Hostname, Yes, ask_to_confirm, print_json, print_message, print_result
from ..select import ClusterQuery, select_existing_cluster


def restart(query: ClusterQuery, hostname: Hostname, yes: Yes = False) -> None:
    """Restart a task.

    It stays on its machine and keeps its volumes and checkpoints. Other tasks are not restarted, and it does not count as a failure.
    The command first prints what happens to data, and asks.
    """
    _start_again(query, hostname, yes, replaces=False)


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
