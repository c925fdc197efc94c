"""The commands of `tfdeploy`. A command is imported when it is called: the list of all of them needs only this table."""

from collections import UserDict
from copy import copy
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import typer
from typer.core import TyperCommand, TyperGroup

from .common import with_common_options

ALL = frozenset({"cwd", "stack", "cluster", "as_json", "output"})
"""The options that select clusters and the format of the result."""

_NO_RESULT = frozenset({"as_json", "output"})
_WHOLE_STACK = frozenset({"cluster"})
_NO_CLUSTER = frozenset({"cwd", "stack", "cluster"})


@dataclass(frozen=True)
class Verb:
    """One command of `tfdeploy`."""

    name: str
    """What the user types."""
    summary: str
    """The first line of its help."""
    without: frozenset[str] = frozenset()
    """The common options that would mean nothing here."""
    wide: bool = False
    """Whether its table has a form with all columns."""
    aliases: tuple[str, ...] = ()
    runs_command: bool = False
    """Whether what follows its first argument is the user's command, with its own options."""
    module: str = ""
    """The module with its function, in this package; by default that of its name in `commands`."""
    function: str = ""
    """By default that of its name."""

    def imported(self, name: str, group: str) -> TyperCommand:
        """Import the command, under its name or an alias."""
        identifier = self.name.replace("-", "_")
        module = import_module(f".{self.module or f'commands.{identifier}'}", __package__)
        function = getattr(module, self.function or identifier)
        app = typer.Typer(add_completion=False)
        app.command(
            name,
            hidden=name != self.name,
            rich_help_panel=group,
            context_settings={"allow_interspersed_args": not self.runs_command},
        )(with_common_options(function, ALL - self.without, self.wide) if self.without != ALL else function)
        command = typer.main.get_command(app)
        assert isinstance(command, TyperCommand)
        return command


GROUPS: dict[str, tuple[Verb, ...]] = {
    "Observe": (
        Verb("status", "Show machines and tasks.", wide=True, aliases=("ps", "show")),
        Verb("ls", "Show all clusters that you have created from this computer.", without=_NO_CLUSTER, wide=True),
        Verb("runs", "Show the runs of a cluster, the newest first, also after `pulumi destroy`.", wide=True),
        Verb("diff", "Compare two runs: results, metrics, speed, cost, arguments, versions and code."),
        Verb("logs", "Show the log lines of tasks, oldest first."),
        Verb("events", "Show the events of the current run."),
        Verb("explain", "Explain problems and how to fix them."),
        Verb("top", "Show the processors and the memory that each task uses.", wide=True),
        Verb("endpoints", "Show the addresses of tasks.", wide=True),
        Verb("report", "Write an HTML page about the cluster."),
    ),
    "Control": (
        Verb("wait", "Wait for the end of the run."),
        Verb("stop", "Stop the training. The cluster remains."),
        Verb("restart", "Restart a task."),
        Verb("replace", "Replace a task with a new one without its data.", module="commands.restart"),
        Verb("heal", "Restore lost tasks, controllers and machines.", without=_WHOLE_STACK),
        # It makes its own stack, so it has no options that select a cluster.
        Verb(
            "run",
            "Run a command on a new cluster, and remove the cluster.",
            without=ALL,
            runs_command=True,
            module="run.command",
        ),
    ),
    "Connect": (
        Verb("exec", "Run a command in a task.", without=_NO_RESULT, runs_command=True, function="exec_"),
        Verb("cp", "Copy files from a task, or from a stored run."),
        Verb("ssh", "Log in to an EC2 machine of the cluster.", without=_NO_RESULT, module="commands.exec"),
        Verb("tunnel", "Forward ports of this computer to tasks until Ctrl-C."),
        Verb("port-forward", "Forward ports of this computer to any ports of a task until Ctrl-C."),
    ),
    "Maintain": (
        Verb("leftovers", "Show resources that belong to no stack, or delete them.", wide=True),
        Verb("doctor", "Check what is installed, reachable and configured.", without=_WHOLE_STACK),
        Verb(
            "options",
            "Show the arguments of `TensorFlowCluster` with their types, defaults and meaning.",
            without=_NO_CLUSTER,
        ),
        Verb("iam-policy", "Print the least IAM policy for a cluster on EC2, as JSON.", without=_NO_RESULT),
    ),
}
"""The heading of each group in `tfdeploy --help`, and its commands."""

_FOUND = {
    name: (group, verb) for group, verbs in GROUPS.items() for verb in verbs for name in (verb.name, *verb.aliases)
}


@cache
def _imported(name: str) -> TyperCommand:
    group, verb = _FOUND[name]
    return verb.imported(name, group)


def _entry(name: str) -> TyperCommand:
    """What the list of all commands shows of one."""
    group, verb = _FOUND[name]
    return TyperCommand(name, help=verb.summary, hidden=name != verb.name, rich_help_panel=group)


class _Commands(UserDict[str, TyperCommand]):
    """The commands by name. Each is imported when it is read."""

    def __getitem__(self, name: str) -> TyperCommand:
        if name not in self.data:
            raise KeyError(name)
        return _imported(name)


class VerbGroup(TyperGroup):
    """`tfdeploy` itself."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.commands = _Commands({name: _entry(name) for name in _FOUND})  # type: ignore[assignment]

    def list_commands(self, ctx: object) -> list[str]:
        """The names, without an import of the commands."""
        return list(self.commands)

    def format_help(self, ctx: typer.Context, formatter: object) -> None:  # type: ignore[override]
        """The list of all commands, without an import of them."""
        overview = copy(self)
        overview.commands = {name: _entry(name) for name in _FOUND}
        TyperGroup.format_help(overview, ctx, formatter)  # type: ignore[arg-type]
