"""An account of moto's as fixtures, which need no Docker engine. What they import takes long to load."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """Where moto answers as AWS, without machines."""
    from tests.ec2.preparing import moto_server

    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture
def moto_account(moto_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account in which nothing may be made."""
    from tests.ec2.preparing import logged_in

    with logged_in(moto_endpoint, tmp_path, monkeypatch):
        yield
