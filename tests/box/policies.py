"""Mistakes of moto's mended: of policies with conditions, and of the instance profile of a running instance."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.ec2.models.iam_instance_profile import IamInstanceProfileAssociationBackend
from moto.iam.access_control import IAMPolicyStatement, PermissionResult


@contextmanager
def conditions() -> Iterator[None]:
    """Have a Deny with a condition deny only what the condition is true of; moto tells it little, so mostly nothing.

    To moto a Deny whose condition does not hold denies all the same.
    """
    original = IAMPolicyStatement.is_action_permitted

    def is_action_permitted(statement: Any, *arguments: Any, **named: Any) -> Any:
        known = statement._statement
        if known["Effect"] == "Deny" and "Condition" in known:
            return PermissionResult.NEUTRAL
        return original(statement, *arguments, **named)

    with patch.object(IAMPolicyStatement, "is_action_permitted", is_action_permitted):
        yield


@contextmanager
def replaced_profiles() -> Iterator[None]:
    """Let ReplaceIamInstanceProfileAssociation change what is said of the instance too, which moto forgets."""
    name = "replace_iam_instance_profile_association"
    original = getattr(IamInstanceProfileAssociationBackend, name)

    def replace(backend: Any, association_id: str, *arguments: Any, **named: Any) -> Any:
        made = original(backend, association_id, *arguments, **named)
        said = {"Arn": made.iam_instance_profile.arn, "Id": association_id}
        backend.modify_instance_attribute(made.instance_id, "iam_instance_profile", said)
        return made

    with patch.object(IamInstanceProfileAssociationBackend, name, replace):
        yield
