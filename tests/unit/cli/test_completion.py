"""Commands and their options are completed; names of tasks and clusters are in test_commands.py."""

import pytest

from tfdeploy.cli.completion import candidates


@pytest.mark.parametrize(
    ("words", "begin", "found"),
    [
        ([], "st", ["status", "stop"]),
        ([], "import-", ["import-tfjob"]),
        ([], "zz", []),
        (["logs"], "--t", ["--tail", "--timestamps"]),
        (["ps"], "--w", ["--watch"]),
        (["zz"], "", []),
    ],
)
def test_commands_and_options_are_completed(words: list[str], begin: str, found: list[str]) -> None:
    assert candidates(words, begin) == found
