"""How a command declares its options and arguments, in its annotations: `Annotated[bool, Option("--all", help="…")]`.

Typer reads them (`typer_app`). It takes longer to load than most commands take, so that commands do not import it themselves: a call
without options needs none.
"""

from collections.abc import Callable, Mapping
from typing import Any

Complete = Callable[[Mapping[str, Any], str], list[str]]
"""What completes a word: the values of the options so far, and the beginning of the word, to the words that begin so."""


class Argument:
    """An argument of a command. The settings are those of Typer's `Argument`; `autocompletion` is a `Complete`."""

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names = names
        self.settings = settings


class Option(Argument):
    """An option of a command, under these names."""
