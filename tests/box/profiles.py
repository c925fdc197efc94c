"""The instance profile of a running instance: moto forgets to tell the instance of another one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.ec2.models.iam_instance_profile import IamInstanceProfileAssociationBackend


@contextmanager
def replaced_profiles() -> Iterator[None]:
    """Let ReplaceIamInstanceProfileAssociation change what is said of the instance too."""
    name = "replace_iam_instance_profile_association"
    original = getattr(IamInstanceProfileAssociationBackend, name)

    def replace(backend: Any, association_id: str, *arguments: Any, **named: Any) -> Any:
        made = original(backend, association_id, *arguments, **named)
        said = {"Arn": made.iam_instance_profile.arn, "Id": association_id}
        backend.modify_instance_attribute(made.instance_id, "iam_instance_profile", said)
        return made

    with patch.object(IamInstanceProfileAssociationBackend, name, replace):
        yield
