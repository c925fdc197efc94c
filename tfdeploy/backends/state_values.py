"""Values as Pulumi's state has them."""

from collections.abc import Mapping
from typing import Any


def plain_values(value: Any) -> Any:
    """A value from Pulumi's state, where every number is a float, with the integers that it had before; without the provider."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: plain_values(item) for key, item in value.items() if key != "__provider"}
    return [plain_values(item) for item in value] if isinstance(value, list) else value
