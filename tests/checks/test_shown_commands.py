"""What pages show exists: each command of `tfdeploy` with its options, each argument; README's commands are run by tests."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from tests.pages import ROOT, blocks, commands, pages, words
from tfdeploy.cli.command_table import BY_NAME
from tfdeploy.cli.parser import command_parser, top_parser

README = ROOT / "README.md"


def problems(command: str) -> Iterator[str]:
    """What of a command of `tfdeploy` does not exist."""
    _, *arguments = words(command)
    parser = top_parser()
    for argument in arguments:
        name = argument.partition("=")[0]
        if argument.startswith("-") and len(argument) > 1:
            if name not in parser.option_names():
                yield f"{command}: no option {name}"
        elif parser.prog == "tfdeploy" and argument in BY_NAME:
            parser, _ = command_parser(BY_NAME[argument], argument)
        elif parser.prog == "tfdeploy":
            if argument != "help":
                yield f"{command}: no command {argument}"
            return


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_exist(page: Path) -> None:
    shown = [command for command in commands(page) if re.match(r"(?:\w+=\S+ )*tfdeploy ", command)]
    assert [problem for command in shown for problem in problems(command)] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_in_its_sentences_exist(page: Path) -> None:
    named = set(re.findall(r"`tfdeploy ([a-z]+(?:-[a-z]+)*)", page.read_text()))
    assert {name for name in named if name not in (*BY_NAME, "help")} == set()


def test_pages_install_the_present_version() -> None:
    text = "\n".join(page.read_text() for page in pages())
    assert {*re.findall(r"install resource tfdeploy (\S+)", text)} == {version("pulumi-tfdeploy")}


@pytest.mark.parametrize(("language", "read"), [("python", ast.parse), ("yaml", yaml.safe_load), ("json", json.loads)])
def test_what_a_page_shows_can_be_read(language: str, read: Callable[[str], object]) -> None:
    shown = [(page, block.text) for page in pages() for block in blocks(page, language)]
    for page, text in shown:
        if "…" in text:
            continue
        try:
            read(text)
        except (SyntaxError, ValueError, yaml.YAMLError) as error:
            pytest.fail(f"{page.relative_to(ROOT)}: {error}\n{text}")
