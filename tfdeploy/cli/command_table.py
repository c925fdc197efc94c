"""The commands of `tfdeploy`. A command is imported when it is called: the list of all of them needs only this table."""

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import NamedTuple

from .exit_codes import EXIT_WORDS

ALL = frozenset({"cwd", "stack", "cluster", "as_json", "output"})
"""The options that select clusters and the format of the result."""

_NO_RESULT = frozenset({"as_json", "output"})
_TEXTS = (str, list[str] | None)
_WHOLE_STACK = frozenset({"cluster"})
_NO_CLUSTER = frozenset({"cwd", "stack", "cluster"})


class Verb(NamedTuple):
    """One command of `tfdeploy`."""

    name: str
    """What the user types."""
    summary: str = ""
    """The first line of its help, for the list of commands."""
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
    """By default that of this name."""
    is_listed: bool = True
    """Whether the list of commands shows it."""

    def function_with_options(self) -> Callable[..., None]:
        """Import its function. It has the common options in its signature."""
        identifier = self.name.replace("-", "_")
        module = import_module(f".{self.module or f'commands.{identifier}'}", __package__)
        function: Callable[..., None] = getattr(module, self.function or identifier)
        if self.without == ALL:
            return function
        from .common import with_common_options

        return with_common_options(function, ALL - self.without, self.wide)


GROUPS: dict[str, tuple[Verb, ...]] = {
    "Observe": (
        Verb("status", "Show tasks, machines, and how good and far the run is.", wide=True, aliases=("ps", "show")),
        Verb("logs", "Show the log lines of tasks, oldest first."),
        Verb("events", "Show the events of the current run."),
        Verb("explain", "Explain problems and how to fix them."),
        Verb("ls", "Show all your clusters, or what belongs to no stack.", without=frozenset({"cwd"}), wide=True),
        Verb("runs", "Show the runs of a cluster, the newest first.", wide=True),
        Verb("diff", "Compare two runs by results and arguments."),
        Verb("top", "Show the processors and memory that each task uses.", wide=True, is_listed=False),
        Verb("dump", "Show what each task does now, with Python stacks.", wide=True),
        Verb("report", "Write an HTML page about the cluster."),
    ),
    "Control": (
        # It makes its own stack, so it has no options that select a cluster.
        Verb(
            "run",
            "Run a command on a new cluster, and remove it.",
            without=ALL,
            runs_command=True,
            module="run.command",
        ),
        Verb("wait", "Wait for the end of the run."),
        Verb("stop", "Stop the training. The cluster remains."),
        Verb("restart", "Restart a task, or restore what is lost."),
    ),
    "Connect": (
        Verb("exec", "Run a command in a task.", without=_NO_RESULT, runs_command=True, function="exec_"),
        Verb("cp", "Copy files from a task, or from a stored run."),
        Verb("port-forward", "Forward ports of this computer to tasks until Ctrl-C."),
    ),
    "Maintain": (
        Verb("doctor", "Check what is installed, reachable and configured.", without=_WHOLE_STACK),
        Verb("options", "Show the arguments of a `TensorFlowCluster`.", without=_NO_CLUSTER),
        Verb("import-tfjob", "Print the program that a TFJob becomes.", without=ALL, is_listed=False),
    ),
}
"""The heading of each group in `tfdeploy --help`, and its commands."""

BY_NAME = {
    name: (group, verb) for group, verbs in GROUPS.items() for verb in verbs for name in (verb.name, *verb.aliases)
}
"""Each name and alias to the heading and the command."""


def listed_names() -> list[str]:
    """The commands that the help lists."""
    return [verb.name for verbs in GROUPS.values() for verb in verbs if verb.is_listed]


def completed_names(environment: Mapping[str, str]) -> list[str] | None:
    """The commands that begin with the word that bash asks about, by these environment variables; None where that is not the first
    word, or is an option."""
    words = environment.get("COMP_WORDS", "").split()[1:]
    begin = words[0] if words else ""
    if environment.get("COMP_CWORD") != "1" or not (begin == "" or begin[0].isalpha()):
        return None
    return [verb.name for verbs in GROUPS.values() for verb in verbs if verb.name.startswith(begin)]


def complete_function(name: str) -> Callable[[], None] | None:
    """The function of a command that can be called without options and arguments; None for others."""
    if name not in BY_NAME:
        return None
    function = BY_NAME[name][1].function_with_options()
    parameters = inspect.signature(function).parameters.values()
    return None if any(parameter.default is parameter.empty for parameter in parameters) else function


def overview() -> str:
    """What `tfdeploy help` prints."""
    lines = ["Usage: tfdeploy COMMAND [OPTIONS]     `tfdeploy COMMAND --help` has the options.", ""]
    for group, verbs in GROUPS.items():
        listed = [verb for verb in verbs if verb.is_listed]
        titles = [group, *[""] * (len(listed) - 1)]
        lines += [f"{title:<9} {verb.name:<13} {verb.summary}" for title, verb in zip(titles, listed, strict=True)]
    codes = [f"{code} {word}" for code, word in EXIT_WORDS.items()]
    half = (len(codes) + 1) // 2
    lines += [
        "Options:  --help, --version, --debug, --install-completion, --show-completion",
        f"Exit:     {', '.join(codes[:half])},",
        f"          {', '.join(codes[half:])}",
    ]
    return "\n".join(lines) + "\n"
