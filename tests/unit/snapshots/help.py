"""`--help` of every command, at a fixed width. An option that an earlier command has in the same words is there without them."""

import re
from unittest import mock

from tests.unit.snapshots import section
from tfdeploy.cli.command_table import VERBS, overview
from tfdeploy.cli.parser import command_parser

_OPTION = re.compile(r"^  -.*\n(?: {8,}\S.*\n)*", re.MULTILINE)


def help_texts() -> str:
    """The whole surface."""
    known = set[str]()
    with mock.patch.dict("os.environ", COLUMNS="100"):
        texts = {verb.name: command_parser(verb, verb.name)[0].format_help() for verb in VERBS}
    sections = [section(f"tfdeploy {name}", [_shortened(text, known)]) for name, text in texts.items()]
    return "\n".join([section("tfdeploy", [overview()]), *sections])


def _shortened(text: str, known: set[str]) -> str:
    """The help in which the options that are known have no description."""
    repeated = []

    def shown(row: re.Match[str]) -> str:
        if row[0] in known:
            repeated.append(re.split(" {2,}|\n", row[0].strip())[0])
            return ""
        known.add(row[0])
        return row[0]

    text = _OPTION.sub(shown, text)
    return f"{text}  As above: {', '.join(repeated)}" if repeated else text
