"""The commands of `tfdeploy`. A command is imported when it is called: the list of all of them needs only this table."""

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from importlib import import_module
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from .common import EXIT_WORDS, print_message, with_common_options
from .usage_errors import arguments_in_order

ALL = frozenset({"cwd", "stack", "cluster", "as_json", "output"})
"""The options that select clusters and the format of the result."""

_NO_RESULT = frozenset({"as_json", "output"})
_TEXTS = (str, list[str] | None)
_WHOLE_STACK = frozenset({"cluster"})
_NO_CLUSTER = frozenset({"cwd", "stack", "cluster"})


@dataclass(frozen=True)
class Verb:
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
    """The module with its function, in this package; by default that of its name, or of its successor's, in `commands`."""
    function: str = ""
    """By default that of this name."""
    is_listed: bool = True
    """Whether the list of commands shows it."""
    successor: str = ""
    """What a former command is called now. It works for one release more."""
    presets: Mapping[str, object] = field(default_factory=dict)
    """The parameters of its function that a former command sets itself."""

    def imported(self, name: str, group: str) -> TyperCommand:
        """Import the command, under its name or an alias."""
        identifier = (self.successor or self.name).split()[0].replace("-", "_")
        module = import_module(f".{self.module or f'commands.{identifier}'}", __package__)
        function = getattr(module, self.function or identifier)
        app = typer.Typer(add_completion=False)
        if self.successor:
            function = self._with_notice(function)
        if self.without != ALL:
            function = with_common_options(function, ALL - self.without, self.wide)
        app.command(
            name,
            cls=_Command,
            # One line for each paragraph: the help has the width of the terminal.
            help="\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(function.__doc__ or "").split("\n\n")),
            hidden=name != self.name or bool(self.successor),
            rich_help_panel=group,
            context_settings={"allow_interspersed_args": not self.runs_command},
        )(function)
        command = typer.main.get_command(app)
        assert isinstance(command, _Command)
        parameters = inspect.signature(function).parameters.items()
        command.texts = {key for key, parameter in parameters if get_args(parameter.annotation)[0] in _TEXTS}
        return command

    def _with_notice(self, function: Callable[..., None]) -> Callable[..., None]:
        """A former command, which prints its present name first."""

        notice = f"`tfdeploy {self.name}` is now `tfdeploy {self.successor}`."

        @wraps(function)
        def command(query: Any, **options: Any) -> None:
            if not query.as_json:  # a program may read both streams as one
                print_message(f"tfdeploy: {notice}")
            function(query, **self.presets, **options)

        parameters = inspect.signature(function).parameters.values()
        remaining = [parameter for parameter in parameters if parameter.name not in self.presets]
        command.__signature__ = inspect.Signature(remaining)  # type: ignore[attr-defined]
        command.__doc__ = f"{notice}\n\n{inspect.cleandoc(function.__doc__ or '')}"
        return command


class _Command(TyperCommand):
    """A command that does not convert its texts."""

    texts: Collection[str] = ()

    def get_params(self, ctx: Any) -> Any:
        """Its options and arguments."""
        return _without_conversion(super().get_params(ctx), self.texts)


def _without_conversion(options: Sequence[Any], texts: Collection[str] = ()) -> Sequence[Any]:
    """The options, which use defaults and texts as they are: Typer converts values by pydantic, and importing that takes a third of the
    time of a command."""

    def process(option: Any, convert: Callable[[Any, Any], Any], context: object, value: Any) -> Any:
        is_final = option.name in texts or value == option.default
        return value if is_final and not (value is None and option.required) else convert(context, value)

    for option in options:
        if "process_value" not in vars(option):
            option.process_value = partial(process, option, option.process_value)
    return options


GROUPS: dict[str, tuple[Verb, ...]] = {
    "Observe": (
        Verb("status", "Show tasks, machines, and how good and far the run is.", wide=True, aliases=("ps", "show")),
        Verb("logs", "Show the log lines of tasks, oldest first."),
        Verb("events", "Show the events of the current run."),
        Verb("explain", "Explain problems and how to fix them."),
        Verb("ls", "Show all your clusters, or what belongs to no stack.", without=frozenset({"cwd"}), wide=True),
        Verb("runs", "Show the runs of a cluster, the newest first.", wide=True),
        Verb("diff", "Compare two runs by results, arguments and code."),
        Verb("top", "Show the processors and memory that each task uses.", wide=True),
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
        Verb(
            "iam-policy",
            "Print the least IAM policy for a cluster on EC2, as JSON.",
            without=_NO_RESULT,
            is_listed=False,
        ),
        Verb(
            "rbac-policy",
            "Print the least Role for a cluster on Kubernetes, as YAML.",
            without=_NO_RESULT,
            is_listed=False,
        ),
        Verb("import-tfjob", "Print the program that a TFJob becomes.", without=ALL, is_listed=False),
    ),
}
"""The heading of each group in `tfdeploy --help`, and its commands."""

FORMER = (
    Verb("endpoints", wide=True, function="endpoints", successor="status -o wide"),
    Verb(
        "replace",
        successor="restart --without-data",
        presets={"without_data": True, "lost": False, "dry_run": False},
    ),
    Verb(
        "heal",
        without=_WHOLE_STACK,
        successor="restart --lost",
        presets={"lost": True, "hostname": "", "without_data": False, "yes": False},
    ),
    Verb(
        "ssh",
        without=_NO_RESULT,
        function="exec_",
        successor="exec --machine",
        presets={"machine": True, "interactive": False, "terminal": False},
    ),
    Verb("tunnel", successor="port-forward"),
    Verb(
        "leftovers",
        wide=True,
        successor="ls --leftovers",
        presets={"everything": False, "only_leftovers": True},
    ),
)
"""The commands of earlier versions. No list shows them."""

_FOUND = {
    name: (group, verb)
    for group, verbs in {**GROUPS, "Former": FORMER}.items()
    for verb in verbs
    for name in (verb.name, *verb.aliases)
}


def listed_names() -> list[str]:
    """The commands that the help lists."""
    return [verb.name for verbs in GROUPS.values() for verb in verbs if verb.is_listed]


@cache
def _imported(name: str) -> TyperCommand:
    group, verb = _FOUND[name]
    return verb.imported(name, group)


class _Commands(Mapping[str, TyperCommand]):
    """The commands by name. Each is imported when it is read."""

    def __getitem__(self, name: str) -> TyperCommand:
        return _imported(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_FOUND)

    def __len__(self) -> int:
        return len(_FOUND)


class VerbGroup(TyperGroup):
    """`tfdeploy` itself."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.commands = _Commands()  # type: ignore[assignment]

    def get_params(self, ctx: Any) -> Any:
        """The options before the command."""
        return _without_conversion(super().get_params(ctx))

    def list_commands(self, ctx: object) -> list[str]:
        """The names, without an import of the commands."""
        return list(self.commands)

    def main(self, args: Sequence[str] | None = None, **settings: Any) -> Any:  # type: ignore[override]
        """Call the command. `help`, `version`, and options before the command are understood too."""
        return super().main(args=arguments_in_order(sys.argv[1:] if args is None else args), **settings)

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """The list of all commands, without an import of them. It fits in a terminal of 80 columns and 24 lines."""
        formatter.write(overview())


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
