"""Property tests try the examples of the profile."""

from tests import examples

__all__ = ["examples"]
