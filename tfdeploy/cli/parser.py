"""The options of the command: argparse, with errors in one sentence, and the options that many commands have."""

import os
from argparse import REMAINDER, SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from ..errors import UsageError
from .command_table import ALL, BY_NAME, HABITS, VERBS, Verb


class Parser(ArgumentParser):
    """A parser of argparse that raises `UsageError`."""

    def __init__(self, prog: str, text: str, arguments: str = "", add_help: bool = True) -> None:
        """`text` is the help, in paragraphs; `arguments` are shown in the usage."""
        super().__init__(
            prog=prog,
            usage=f"{prog} [OPTIONS] {arguments}".rstrip(),
            description=text,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=add_help,
        )
        self.add_argument("--debug", action="store_true", help=SUPPRESS)

    def format_help(self) -> str:
        """The help in the width of the terminal."""
        import shutil  # takes long to load
        import textwrap

        width = shutil.get_terminal_size().columns - 2
        paragraphs = (self.description or "").split("\n\n")
        self.description = "\n\n".join(
            textwrap.fill(" ".join(text.split()), width, break_on_hyphens=False) for text in paragraphs
        )
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the arguments."""
        raise UsageError(f"{message}. `{self.prog} --help` lists the options.")

    def option_names(self) -> list[str]:
        """The names of the options that the help shows."""
        return [name for action in self._actions if action.help != SUPPRESS for name in action.option_strings]

    def parse(self, words: Sequence[str], has_remainder: bool = False) -> Namespace:
        """The options and arguments among these words; `--debug` is in effect then. With a remainder, no option follows the first
        argument.

        Raises:
            UsageError: they are not valid.
        """
        parse = self.parse_known_args if has_remainder else self.parse_known_intermixed_args
        options, unknown = parse(words)
        if not unknown:
            if options.debug:
                os.environ["TFDEPLOY_DEBUG"] = "1"
            del options.debug
            return options
        first = unknown[0]
        if not first.startswith("-"):
            raise UsageError(f"{first} is not expected here. Use: {self.usage}")
        hint = did_you_mean(first, self.option_names())
        raise UsageError(f"{first} is not an option of `{self.prog}`.{hint} `{self.prog} --help` lists them.")


def without_separator(words: Sequence[str]) -> Sequence[str]:
    """The words of a command, without the `--` before it."""
    return words[1:] if words[:1] == ["--"] else words


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A question that names what is nearest; empty if nothing is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, 2)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def whole_number(least: int | None = None, most: int | None = None) -> Callable[[str], int]:
    """A type of argparse: whole numbers between these."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not a whole number") from None
        if least is not None and number < least:
            raise ArgumentTypeError(f"{text!r} must be at least {least}")
        if most is not None and number > most:
            raise ArgumentTypeError(f"{text!r} must be at most {most}")
        return number

    return convert


def add_yes(parser: Parser) -> None:
    """The option of commands that ask."""
    parser.add_argument("--yes", "-y", action="store_true", help="Do not ask for confirmation.")


def add_common_options(parser: Parser, names: Sequence[str], wide: bool) -> None:
    """The options that select clusters and the format of the result."""
    if "cwd" in names:
        parser.add_argument(
            "--cwd", "-C", type=Path, default=Path(), metavar="FOLDER", help="Folder of the Pulumi program."
        )
    if "stack" in names:
        parser.add_argument("--stack", "-s", default="", help="Stack. Default: the selected stack.")
    if "cluster" in names:
        text = "Cluster, or its id. Needed if the stack has more than one."
        parser.add_argument("--cluster", "-c", default="", help=text)
    if "json" in names:
        parser.add_argument("--json", action="store_true", dest="as_json", help="Print JSON.")
        json = "`json` is the same as --json."
        text = f"`wide` prints all columns in full, {json}" if wide else json
        parser.add_argument("--output", "-o", choices=["wide", "json"] if wide else ["json"], help=text)


def top_parser() -> Parser:
    """What precedes the name of a command: options of `tfdeploy` itself, and those that the command has too. `words` are the rest."""
    parser = Parser("tfdeploy", "", add_help=False)
    parser.add_argument("--help", "-h", action="store_true")
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--install-completion", nargs="?", const="", metavar="SHELL")
    parser.add_argument("--show-completion", nargs="?", const="", metavar="SHELL")
    add_common_options(parser, ALL, wide=True)
    parser.add_argument("words", nargs=REMAINDER)
    return parser


def command_parser(verb: Verb, name: str) -> tuple[Parser, Callable[..., None]]:
    """The parser of a command, and its function."""
    identifier = verb.name.replace("-", "_")
    module = import_module(f".commands.{identifier}", __package__)
    function: Callable[..., None] = getattr(module, "exec_" if identifier == "exec" else identifier)
    parser = Parser(f"tfdeploy {name}", function.__doc__ or "", verb.arguments)
    if hasattr(module, "add_arguments"):
        module.add_arguments(parser)
    add_common_options(parser, verb.common, verb.wide)
    return parser, function


def find_command(name: str) -> Verb:
    """The command of a name or alias.

    Raises:
        UsageError: there is none.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    begin = f"there is no command {name!r}."
    if name in HABITS:
        raise UsageError(f"{begin} {HABITS[name][0].upper()}{HABITS[name][1:]}.")
    hint = did_you_mean(name, [verb.name for verb in VERBS if verb.is_listed])
    raise UsageError(f"{begin}{hint} `tfdeploy help` lists the commands.")
