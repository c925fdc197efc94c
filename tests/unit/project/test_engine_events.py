"""What a call of Pulumi's has touched, by the engine's events."""

import json

import pytest

from tests.integration.conftest import Call

URN = "urn:pulumi:test::project::tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Run::test-run"
TORN = "@ updating.... ~  pulumi-python:dynamic/tfdeploy:Run test-run updated (1s) [diff: ~run]\n"
"""As Pulumi prints a row while it prints dots."""


def event(op: str, kind: str = "pulumi-python:dynamic/tfdeploy:Run", what: str = "resOutputsEvent") -> str:
    """A line of the log."""
    return json.dumps({"sequence": 1, what: {"metadata": {"op": op, "urn": URN, "type": kind}}}) + "\n"


@pytest.mark.parametrize("op", ["create", "update", "delete", "replace", "create-replacement", "delete-replaced"])
def test_a_change_is_seen_though_its_row_follows_dots_in_the_same_line(op: str) -> None:
    assert Call(0, TORN, event("same") + event(op)).touched() == {"test-run"}


@pytest.mark.parametrize(
    "line", [event("same"), event("refresh"), event("update", "aws:ec2:Instance"), event("update", what="other")]
)
def test_what_has_not_changed_is_not_touched(line: str) -> None:
    assert Call(0, TORN, line).touched() == set()
