"""The reference pages say what the code says."""

from typing import get_type_hints

import pytest

from tfdeploy.spec.arg_docs import attributes
from tools import arguments
from tools.reference import ARGS, COMMAND, DOCUMENTS, JSON, SCHEMA, TARGET, command, json_page, reference, schema


def test_the_reference_is_made_from_the_code() -> None:
    assert TARGET.read_text() == reference(), "run: python -m tools.reference"
    assert COMMAND.read_text() == command(), "run: python -m tools.reference"
    assert JSON.read_text() == json_page(), "run: python -m tools.reference"


@pytest.mark.parametrize("title", DOCUMENTS)
def test_each_member_of_a_document_is_described(title: str) -> None:
    for owner in DOCUMENTS[title]:
        assert [*attributes(owner)] == [*get_type_hints(owner)]


def test_the_arguments_of_type_checkers_are_made_from_their_declarations() -> None:
    assert ARGS.read_text() == arguments.module(), "run: python -m tools.reference"


def test_the_schema_is_made_from_the_code() -> None:
    assert SCHEMA.read_text() == schema(), "run: python -m tools.reference"
