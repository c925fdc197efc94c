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
START = ROOT / "docs" / "get-started.md"
RUN_BY = {
    README: "tests/setup/test_wheel.py::test_readmes_quick_start_works_as_it_is_typed",
    START: "tests/integration/test_get_started.py::test_every_command_of_the_page_runs",
}
"""The tests that run every command of a page, and compare the output that it shows."""

NOT_RUN = {"source tools/activate", "make setup"}
"""What these tests have done already when they begin."""


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


@pytest.mark.parametrize("page", RUN_BY, ids=lambda page: page.name)
def test_the_test_that_runs_the_commands_of_a_page_exists(page: Path) -> None:
    file, _, name = RUN_BY[page].partition("::")
    tree = ast.parse((ROOT / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(commands(page)) - NOT_RUN


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
