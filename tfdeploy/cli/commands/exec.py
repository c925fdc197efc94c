"""`tfdeploy exec`: run a command in a task, or log in to a machine."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Annotated

from ...backends.load import access
from ...errors import BackendError, SpecError
from ..common import Hostname
from ..option import Argument, Option
from ..select import ClusterQuery, select_existing_cluster


def exec_(
    query: ClusterQuery,
    hostname: Hostname,
    command: Annotated[
        list[str] | None, Argument(metavar="-- COMMAND…", help="Command and its arguments.", show_default=False)
    ] = None,
    machine: Annotated[
        bool,
        Option(
            "--machine",
            help="Log in to an EC2 machine by ssh: HOSTNAME is its name, or a task on it. What follows -- are arguments of ssh.",
            show_default=False,
        ),
    ] = False,
    interactive: Annotated[
        bool, Option("--interactive", "-i", help="Connect stdin: always the case.", show_default=False)
    ] = False,
    terminal: Annotated[
        bool,
        Option(
            "--tty", "-t", help="Require a terminal, which is used in any case if there is one.", show_default=False
        ),
    ] = False,
) -> None:
    """Run a command in a task.

    It has the container, working directory and environment of the task's program, and this terminal or stdin. The exit code is that of
    the command. What follows the task is the command, so options come before the task. `-it` is accepted as in `docker exec`, and not
    needed. With --machine, the host key is checked: EC2 has reported it.
    """
    del interactive
    command = (command or [])[(command or [])[:1] == ["--"] :]
    if machine:
        _log_in(query, hostname, command)
    if not command or command[0].startswith("-"):
        wrong = (
            f"the command after {hostname} begins with {command[0]!r}"
            if command
            else f"there is no command after {hostname}"
        )
        raise SpecError("exec", wrong, f"Use: tfdeploy exec [OPTIONS] {hostname} -- COMMAND.")
    if terminal and not sys.stdin.isatty():
        raise SpecError("--tty", "stdin is not a terminal", "Leave it out.")
    cluster = select_existing_cluster(query).cluster
    sys.exit(access(cluster["backend"]).execute(cluster, hostname, command))


def _log_in(query: ClusterQuery, machine: str, arguments: Sequence[str]) -> None:
    cluster = select_existing_cluster(query).cluster
    command = [*access(cluster["backend"]).ssh(cluster, machine), *arguments]
    if not shutil.which(command[0]):
        raise BackendError(f"the command {command[0]} was not found. Install OpenSSH's client.")
    os.execvp(command[0], command)
