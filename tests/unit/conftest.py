"""Property tests try the examples of the profile. No unit test waits for a disk."""

import os
from collections.abc import Iterator

import pytest

from tests import examples

__all__ = ["examples"]


@pytest.fixture(autouse=True, scope="module")
def no_fsync() -> Iterator[None]:
    """What is synchronised, and when, is shown by tests that replace `os.fsync` with their own function."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
