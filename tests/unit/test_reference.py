"""The reference pages say what the code says."""

from tools.reference import COMMAND, TARGET, command, reference


def test_the_reference_is_made_from_the_code() -> None:
    assert TARGET.read_text() == reference(), "run: python -m tools.reference"
    assert COMMAND.read_text() == command(), "run: python -m tools.reference"
