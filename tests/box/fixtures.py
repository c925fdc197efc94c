"""The box as a fixture: one for a process of the tests, made when the first of them asks for it."""

from collections.abc import Iterator

import pytest

from tests.box.cloud import Box


@pytest.fixture(scope="session")
def box(engine: str) -> Iterator[Box]:
    """EC2 in a box; it leads nobody there who does not take its `environment`."""
    with Box(engine) as found:
        yield found


@pytest.fixture(scope="session")
def box_image(box: Box, python_image: str) -> str:
    """The image with Python, by the name under which machines pull it."""
    return box.push(python_image)
