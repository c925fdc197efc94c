"""A preview, an observation and a deletion make as many calls of AWS's API for many machines as for few."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from botocore.client import BaseClient

from tests.clusters import ID, cluster_ref
from tests.unit.backends.ec2 import fleets
from tests.unit.backends.ec2.fleets import SMALL
from tests.unit.backends.ec2.moto_account import moto_account
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.backends.ec2 import cleanup
from tfdeploy.backends.ec2.aws import account
from tfdeploy.backends.ec2.backend import BACKEND
from tfdeploy.backends.ec2.machine import machine_provider, machines, model, ssh
from tfdeploy.backends.ec2.machine.ssh import Host, SshHosts
from tfdeploy.errors import Unreachable
from tfdeploy.plan.plan import Plan, make_plan

REGION = "eu-west-1"
"""Not the box's: in its region, the instances of this process may be containers."""

CLUSTER = cluster_ref("ec2", ssh.home(REGION, f"mnist-{ID}"))
SIZES = (2, 40)

PREVIEW = {
    "GetCallerIdentity": 1,
    "DescribeInstanceTypes": 1,
    "DescribeInstanceTypeOfferings": 1,
    "DescribeInstances": 1,
    "DescribeVpcs": 1,
    "DescribeSubnets": 1,
    "GetParameter": 1,
    "DescribeFileSystems": 1,
    "GetObject": 1,
    "ListAccountAliases": 1,
}
"""It inspects, plans, validates and renders."""

LOOK = {"DescribeInstances": 1}
LOOK_AFTER_AN_END = {"DescribeInstances": 2, "GetCallerIdentity": 1, "GetObject": 1}
"""The second call asks for the known ids of those without the cluster's tag; the manager is among them, so its record is
read from the bucket."""

DELETION = {
    "DescribeInstances": 2,
    "TerminateInstances": 1,
    "DescribeFileSystems": 1,
    "DescribeVolumes": 1,
    "DescribeSecurityGroups": 1,
    "DescribeKeyPairs": 1,
}
"""The second call of `DescribeInstances` finds that all have ended."""

UNREACHABLE = "there is no Swarm"
UNKNOWN = f"{UNREACHABLE}. The plan does not say which existing tasks the update changes"


@pytest.fixture(autouse=True)
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each action of AWS's API was called, in an account without machines."""
    counted: Counter[str] = Counter()
    original = BaseClient._make_api_call

    def call(client: Any, operation: str, arguments: Any) -> Any:
        counted[operation] += 1
        return original(client, operation, arguments)

    def route(_: str) -> Any:
        raise Unreachable(UNREACHABLE)

    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setattr(ssh, "route", route)
    monkeypatch.setattr(ssh, "_in_use", {})
    monkeypatch.setattr(machine_provider, "read_stored_key", lambda _: "")  # Pulumi's engine has it
    (tmp_path / "key.pub").write_text("ssh-ed25519 AAAA me@here\n")
    with moto_account(tmp_path / "state", monkeypatch), patch.object(BaseClient, "_make_api_call", call):
        yield counted


def preview(folder: Path, workers: int) -> tuple[Plan, Sequence[str]]:
    """What a preview does before Pulumi hears of a resource: the plan and its warnings."""
    own = {"ssh_cidrs": ["203.0.113.7/32"], "ssh_public_key": f"{folder}/key.pub", "efs": "new", "max_machines": 100}
    asked = fleets.spec(workers=workers, command=["python", "/opt/train.py"], ec2=own)
    inventory = BACKEND.planner.inspect(CLUSTER, asked, folder)
    plan = make_plan(asked, inventory)
    warnings = BACKEND.planner.validate(CLUSTER, asked, plan, inventory, ())
    BACKEND.planner.render(CLUSTER, asked, plan, inventory)
    return plan, warnings


def launch(plan: Plan) -> list[str]:
    """Instances with the tags of the plan's machines, which this computer can reach; their ids."""
    ids = []
    for machine in plan.machines:
        planned = model.ec2_machine(machine)
        own = {
            **machines.tags(CLUSTER),
            model.MACHINE: machine.name,
            model.ROLE: machine.role,
            model.IMAGE: planned.request.image,
            model.FILES: "new",
            model.ACCESS: "public",
        }
        tags = [{"Key": key, "Value": value} for key, value in own.items()]
        made = account.client("ec2", REGION).run_instances(
            ImageId=planned.image_id,
            InstanceType=SMALL.name,
            SubnetId=planned.subnet.subnet_id,
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        )
        ids.append(made["Instances"][0]["InstanceId"])
    hosts = {
        machine.name: Host(instance, "198.51.100.7", "ssh-ed25519 AAAA")
        for machine, instance in zip(plan.machines, ids, strict=True)
    }
    ssh.write(CLUSTER, SshHosts(machines.manager(plan.machines).name, "ec2-user", hosts))
    return ids


@pytest.mark.parametrize("workers", SIZES)
def test_a_preview_makes_as_many_calls_for_many_machines(tmp_path: Path, calls: Counter[str], workers: int) -> None:
    plan, warnings = preview(tmp_path, workers)
    assert len(plan.machines) == workers
    assert UNKNOWN not in warnings
    assert calls == PREVIEW
    launch(plan)
    calls.clear()
    account.forget()
    again, warnings = preview(tmp_path, workers)
    assert all(machine.exists for machine in again.machines)
    assert UNKNOWN in warnings
    assert calls == PREVIEW
    assert again.run.cost_per_hour == plan.run.cost_per_hour > 0
    assert again.cost == plan.cost


@pytest.mark.parametrize("workers", SIZES)
def test_an_observation_and_a_deletion_make_as_many_calls_for_many_machines(
    tmp_path: Path, calls: Counter[str], workers: int
) -> None:
    plan, _ = preview(tmp_path, workers)
    ids = launch(plan)
    account.forget()
    calls.clear()
    state = BACKEND.runner.observe(CLUSTER, "", ViewRequest())
    assert len(state.machines.statuses) == workers
    assert calls == LOOK

    account.client("ec2", REGION).terminate_instances(InstanceIds=ids[: len(ids) // 2])
    calls.clear()
    BACKEND.runner.observe(CLUSTER, "", ViewRequest())
    assert calls == LOOK_AFTER_AN_END

    calls.clear()
    cleanup.delete_tagged(REGION, machines.id_tag(CLUSTER), keep_files=False)
    assert calls == DELETION


def test_a_machine_with_another_tag_is_the_clusters_by_its_id(tmp_path: Path, calls: Counter[str]) -> None:
    plan, _ = preview(tmp_path, 2)
    ids = launch(plan)
    other = [{"Key": model.CLUSTER_ID, "Value": "another"}, {"Key": model.MACHINE, "Value": "another"}]
    account.client("ec2", REGION).create_tags(Resources=ids, Tags=other)
    state = BACKEND.runner.observe(CLUSTER, "", ViewRequest())
    assert {*state.machines.statuses.values()} == {"connecting"}
    again, _ = preview(tmp_path, 2)
    assert all(model.ec2_machine(machine).can_stay for machine in again.machines)
    assert machines.manager(again.machines).name == machines.manager(plan.machines).name
