"""The reference pages say what the code says."""

from tools import arguments
from tools.reference import ARGS, COMMAND, SCHEMA, TARGET, command, reference, schema


def test_the_reference_is_made_from_the_code() -> None:
    assert TARGET.read_text() == reference(), "run: python -m tools.reference"
    assert COMMAND.read_text() == command(), "run: python -m tools.reference"


def test_the_arguments_of_type_checkers_are_made_from_their_declarations() -> None:
    assert ARGS.read_text() == arguments.module(), "run: python -m tools.reference"


def test_the_schema_is_made_from_the_code() -> None:
    assert SCHEMA.read_text() == schema(), "run: python -m tools.reference"
