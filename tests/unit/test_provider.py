"""The package for other languages: nested outputs have the schema's names, and a group cannot be an Output."""

import asyncio
import json
from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertyError

from tfdeploy.cluster import TYPE
from tfdeploy.program.provider import Package

PACKAGE = Package()
CLUSTER = PACKAGE._component_defs["TensorFlowCluster"]


class Cluster(pulumi.ComponentResource):
    """A cluster with one task, as far as the package reads it."""

    def __init__(self) -> None:
        self.tasks = pulumi.Output.from_input([{"hostname": "worker-0", "exit_code": 3, "public_ip": ""}])
        self.cost = pulumi.Output.from_input({"per_hour": 0.5, "billed_after": ["a bucket"]})


def test_nested_outputs_have_the_names_of_the_schema() -> None:
    async def read() -> tuple[Any, Any]:
        state = PACKAGE.get_state(Cluster(), CLUSTER)
        return await state["tasks"].future(), await state["cost"].future()

    tasks, cost = asyncio.run(read())
    assert tasks == [{"hostname": "worker-0", "exitCode": 3, "publicIp": ""}]
    assert cost == {"perHour": 0.5, "billedAfter": ["a bucket"]}


@pytest.mark.parametrize(
    ("path", "inputs"),
    [
        ("ec2", lambda output: {"ec2": output}),
        ("jobs", lambda output: {"jobs": output}),
        ("jobs.worker", lambda output: {"jobs": {"worker": output}}),
        ("jobs.worker.container", lambda output: {"jobs": {"worker": {"container": output}}}),
    ],
)
def test_a_group_cannot_be_an_output(path: str, inputs: Any) -> None:
    async def construct() -> None:
        PACKAGE.construct("mnist", TYPE, inputs(pulumi.Output.from_input({"spot": True})))

    with pytest.raises(InputPropertyError) as error:
        asyncio.run(construct())
    assert error.value.property_path == path


def test_members_may_be_outputs_of_every_type() -> None:
    async def mapped() -> Any:
        output = pulumi.Output.from_input("x")
        inputs = {"workers": output, "backend": output, "ec2": {"maxMachines": output, "spot": True}}
        return PACKAGE.map_inputs(inputs, CLUSTER), output

    args, output = asyncio.run(mapped())
    assert args == {"workers": output, "backend": output, "ec2": {"max_machines": output, "spot": True}}


def test_the_schema_marks_groups_as_plain_and_nothing_else() -> None:
    (resource,) = json.loads(PACKAGE.schema or "")["resources"].values()
    groups = {"jobs", "services", "dataService", "restart", "elastic", "container", "docker", "ec2", "kubernetes"}
    assert {name for name, definition in resource["inputProperties"].items() if definition.get("plain")} == groups
