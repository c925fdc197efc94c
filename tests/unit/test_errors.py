"""Every way tfdeploy says no."""

import inspect

import pytest

from tfdeploy import errors
from tfdeploy.errors import CommandError, TfdeployError

CLASSES = [item for _, item in inspect.getmembers(errors, inspect.isclass) if item.__module__ == errors.__name__]
LEAVES = [item for item in CLASSES if item is not TfdeployError]


@pytest.mark.parametrize("error", LEAVES, ids=lambda error: error.__name__)
def test_each_error_has_our_root_and_is_a_python_error_too(error: type[Exception]) -> None:
    assert issubclass(error, TfdeployError)
    assert issubclass(error, (ValueError, RuntimeError, LookupError))


def test_a_failed_command_carries_its_exit_code_and_its_last_lines() -> None:
    error = CommandError("pip install x", 3, [f"line {number}" for number in range(30)])
    assert (error.exit_code, len(error.output)) == (3, 30)
    first, *tail = str(error).splitlines()
    assert first == "pip install x failed with exit code 3. Its last lines:"
    assert tail == [f"  line {number}" for number in range(10, 30)]


def test_what_a_failed_command_printed_cannot_control_the_terminal() -> None:
    lines = ["\x1b[31mred\x1b[0m\x1b[2J", "\x1b]52;c;ZXZpbA==\x07", "a\ttab \x9b8m\rover", "näher"]
    message = str(CommandError("pip", 1, lines))
    assert message.splitlines()[1:] == ["  red", "  ]52;c;ZXZpbA==", "  a\ttab 8mover", "  näher"]
