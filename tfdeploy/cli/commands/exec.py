"""`tfdeploy exec`: run a command in a task, or log in to a machine."""

import os
import shutil
import sys
from argparse import REMAINDER
from collections.abc import Sequence

from ...backends.backend import access
from ...errors import BackendError, SpecError
from ..cluster_selection import ClusterQuery, select_existing_cluster
from ..parser import Parser, without_separator


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    parser.add_argument("hostname", metavar="HOSTNAME", help="Task, such as worker-0.")
    parser.add_argument("command", nargs=REMAINDER, metavar="COMMAND", help="Command and its arguments.")
    machine = (
        "Log in to an EC2 machine by ssh: HOSTNAME is its name, or a task on it. What follows -- are arguments of ssh."
    )
    parser.add_argument("--machine", action="store_true", help=machine)
    parser.add_argument("--interactive", "-i", action="store_true", help="Connect stdin: always the case.")
    terminal = "Require a terminal, which is used in any case if there is one."
    parser.add_argument("--tty", "-t", action="store_true", dest="terminal", help=terminal)


def exec_(
    query: ClusterQuery,
    hostname: str,
    command: Sequence[str] = (),
    machine: bool = False,
    interactive: bool = False,
    terminal: bool = False,
) -> None:
    """Run a command in a task.

    It has the container, working directory and environment of the task's program, and this terminal or stdin. The exit code is that of
    the command. What follows the task is the command, so options come before the task. `-it` is accepted as in `docker exec`, and not
    needed. With --machine, the host key is checked: EC2 has reported it.
    """
    del interactive
    command = without_separator(command)
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
