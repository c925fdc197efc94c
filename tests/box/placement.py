"""Placement groups, which moto does not have: they are made, described, deleted and named by instances; no more."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response
from moto.ec2.responses.instances import InstanceResponse

Groups = dict[str, dict[str, Any]]
"""By name; what DescribePlacementGroups answers of each."""


@contextmanager
def placement_groups(groups: Groups) -> Iterator[None]:
    """Let EC2 have placement groups, kept in `groups`."""
    with ExitStack() as stack:
        for name, action in _actions(groups).items():
            stack.enter_context(patch.object(EC2Response, name, action, create=True))
        changed = _run_instances(InstanceResponse.run_instances, groups)
        stack.enter_context(patch.object(InstanceResponse, "run_instances", changed))
        yield


def _actions(groups: Groups) -> dict[str, Any]:
    def create_placement_group(response: Any) -> Any:
        name = response._get_param("GroupName")
        if name in groups:
            raise EC2ClientError("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
        tags = response._parse_tag_specification().get("placement-group", {})
        number = f"pg-{uuid.uuid4().hex[:17]}"
        groups[name] = {
            "GroupName": name,
            "GroupId": number,
            "GroupArn": f"arn:aws:ec2:{response.region}:{response.current_account}:placement-group/{name}",
            "State": "available",
            "Strategy": response._get_param("Strategy", "cluster"),
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }
        return ActionResult({"PlacementGroup": groups[name]})

    def describe_placement_groups(response: Any) -> Any:
        names = response._get_param("GroupNames", [])
        for name in names:
            _known(groups, name)
        return ActionResult(
            {"PlacementGroups": [group for name, group in groups.items() if name in names or not names]}
        )

    def delete_placement_group(response: Any) -> Any:
        name = response._get_param("GroupName")
        _known(groups, name)
        if any(one.placement.group_name == name and one.state != "terminated" for one in _instances(response)):
            raise EC2ClientError("InvalidPlacementGroup.InUse", f"The placement group {name} is in use.")
        del groups[name]
        return ActionResult({})

    return {made.__name__: made for made in (create_placement_group, describe_placement_groups, delete_placement_group)}


def _run_instances(original: Any, groups: Groups) -> Any:
    def run_instances(response: Any) -> Any:
        name = response._get_param("Placement.GroupName")
        if name:
            _known(groups, name)
        answer = original(response)
        for instance in answer.result.instances:
            instance.placement.group_name = name or ""
        return answer

    return run_instances


def _known(groups: Groups, name: str) -> None:
    if name not in groups:
        raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")


def _instances(response: Any) -> list[Any]:
    found: list[Any] = response.ec2_backend.all_instances()
    return found
