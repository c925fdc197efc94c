"""Fixtures of the tests of what the watchdog uploads."""

from pathlib import Path

import pytest

from tests.unit.backends.ec2.watchdog.sending import Sent, stored_record
from tfdeploy.agent.record.record import Record


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return stored_record(tmp_path / "record")


@pytest.fixture
def sent() -> Sent:
    return Sent()
