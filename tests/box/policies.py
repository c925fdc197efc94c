"""A mistake of moto's mended: to it a Deny whose condition does not hold denies all the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.iam.access_control import IAMPolicyStatement, PermissionResult


@contextmanager
def conditions() -> Iterator[None]:
    """Have a Deny with a condition deny only what the condition is true of; moto tells it little, so mostly nothing."""
    original = IAMPolicyStatement.is_action_permitted

    def is_action_permitted(statement: Any, *arguments: Any, **named: Any) -> Any:
        known = statement._statement
        if known["Effect"] == "Deny" and "Condition" in known:
            return PermissionResult.NEUTRAL
        return original(statement, *arguments, **named)

    with patch.object(IAMPolicyStatement, "is_action_permitted", is_action_permitted):
        yield
