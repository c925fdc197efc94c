"""Values as Pulumi passes them: from its state, from resources and from other languages."""

from collections.abc import Mapping
from typing import Any


def plain_values(value: Any) -> Any:
    """A value with 2 for 2.0, at every depth, because Pulumi passes all numbers as floats; without the provider of a resource."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: plain_values(item) for key, item in value.items() if key != "__provider"}
    return [plain_values(item) for item in value] if isinstance(value, list) else value
