"""The command with its options, which Typer parses. Only calls with options and the completion of words load this module and Typer."""

import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial, wraps
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import UsageError
from .command_table import BY_NAME, GROUPS, listed_names, overview
from .option import Argument, Complete, Option
from .usage_errors import arguments_in_order, usage_message

_SUMMARY = "Inspect and control TensorFlow clusters."
_TEXTS = (str, list[str] | None)
_USAGE_ERROR: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
"""The error that Typer raises for wrong usage. It may contain its own copy of click."""


def call(command: Callable[..., object], name: str, arguments: Sequence[str]) -> object:
    """Call a command of this name with these arguments.

    Raises:
        UsageError: Typer refuses them.
    """
    try:
        return command(list(arguments), standalone_mode=False, prog_name=name)
    except _USAGE_ERROR as error:
        raise UsageError(usage_message(error, listed_names())) from None


def with_typer(function: Callable[..., None]) -> Callable[..., None]:
    """The function, with Typer's options and arguments in place of its own."""

    @wraps(function)
    def command(*args: Any, **options: Any) -> None:
        function(*args, **options)

    parameters = [_typer_parameter(parameter) for parameter in inspect.signature(function).parameters.values()]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _typer_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    kind, declared = get_args(parameter.annotation)
    assert isinstance(declared, Argument)
    settings = dict(declared.settings)
    if "autocompletion" in settings:
        settings["autocompletion"] = _completer(settings["autocompletion"])
    make = typer.Option if isinstance(declared, Option) else typer.Argument
    return parameter.replace(annotation=Annotated[kind, make(*declared.names, **settings)])


def _completer(complete: Complete) -> Callable[[typer.Context, str], list[str]]:
    def completed(ctx: typer.Context, incomplete: str) -> list[str]:
        return complete(ctx.params, incomplete)

    return completed


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


@cache
def _command(name: str) -> TyperCommand:
    """A command, under its name or an alias."""
    group, verb = BY_NAME[name]
    function = verb.function_with_options()
    made = typer.Typer(add_completion=False)
    made.command(
        name,
        cls=_Command,
        # One line for each paragraph: the help has the width of the terminal.
        help="\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(function.__doc__ or "").split("\n\n")),
        hidden=name != verb.name,
        rich_help_panel=group,
        context_settings={"allow_interspersed_args": not verb.runs_command},
    )(with_typer(function))
    command = typer.main.get_command(made)
    assert isinstance(command, _Command)
    parameters = inspect.signature(function).parameters.items()
    command.texts = {key for key, parameter in parameters if get_args(parameter.annotation)[0] in _TEXTS}
    return command


class _Commands(Mapping[str, TyperCommand]):
    """The commands by name. Each is imported when it is read."""

    def __getitem__(self, name: str) -> TyperCommand:
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(BY_NAME)

    def __len__(self) -> int:
        return len(BY_NAME)


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

    def shell_complete(self, ctx: typer.Context, incomplete: str) -> list[Any]:  # type: ignore[override]
        """The names and options that begin so, without an import of the commands."""
        verbs = [verb for group in GROUPS.values() for verb in group]
        commands = [TyperCommand(verb.name, short_help=verb.summary) for verb in verbs]
        table = TyperGroup(commands=commands, params=self.params)
        return table.shell_complete(typer.Context(table), incomplete)

    def main(self, args: Sequence[str] | None = None, **settings: Any) -> Any:  # type: ignore[override]
        """Call the command. `help`, `version`, and options before the command are understood too."""
        return super().main(args=arguments_in_order(args or ()), **settings)

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """The list of all commands, without an import of them. It fits in a terminal of 80 columns and 24 lines."""
        formatter.write(overview())


app = typer.Typer(
    name="tfdeploy",
    cls=VerbGroup,
    help=_SUMMARY,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import registry
        from .common import print_result

        print_result(f"tfdeploy {registry.versions().get('pulumi-tfdeploy', 'from source')}")
        raise typer.Exit


@app.callback(help=_SUMMARY)
def main_options(
    debug: bool = typer.Option(False, "--debug", help="Print a traceback on errors.", show_default=False),
    version: bool = typer.Option(
        False, "--version", help="Print the version.", show_default=False, callback=_print_version, is_eager=True
    ),
) -> None:
    """Set the options of all commands."""
    if debug:
        os.environ["TFDEPLOY_DEBUG"] = "1"
