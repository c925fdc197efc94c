"""`tfdeploy exec` and `tfdeploy ssh`: into a task, onto a machine."""

import os
import shutil
from typing import Annotated

import typer

from ..backends.access import access
from ..errors import BackendError
from . import completing
from .asking import Asked, Hostname
from .finding import standing


def exec_(
    asked: Asked,
    hostname: Hostname,
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND…", help="What to run.", show_default=False)],
) -> None:
    """Run a command where a task runs: in its container, working directory and environment.

    The exit code is the command's. A terminal is handed on; so is input that is not one.
    """
    cluster = standing(asked).cluster
    raise typer.Exit(access(cluster["backend"]).execute(cluster, hostname, command))


def ssh(
    asked: Asked,
    machine: Annotated[
        str,
        typer.Argument(help="The machine, or a task on it.", show_default=False, autocompletion=completing.hostnames),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT…]", help="More for ssh.", show_default=False)
    ] = None,
) -> None:
    """Log in to a machine that was made for the cluster, with the host key that EC2 itself has told."""
    cluster = standing(asked).cluster
    command = [*access(cluster["backend"]).ssh(cluster, machine), *(arguments or [])]
    if not shutil.which(command[0]):
        raise BackendError(f"there is no {command[0]} on this computer. Install OpenSSH's client.")
    os.execvp(command[0], command)
