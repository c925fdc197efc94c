"""How many calls of AWS's API a preview, an observation and a deletion make: a list call has all machines, so none is made for each.
What carries our tags in an account is found, told by cluster, with its price.
"""

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
from tfdeploy.backends.ec2 import cleanup, costs, discover, record_bucket
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


def test_what_carries_our_tags_is_told_by_cluster() -> None:
    """A volume, a security group, a role and a record with our tags; another volume has our words but no cluster's id."""
    ec2, iam = account.client("ec2", REGION), account.client("iam", REGION)
    own = [{"Key": key, "Value": value} for key, value in machines.tags(CLUSTER).items()]
    others = [tag for tag in own if tag["Key"] != model.CLUSTER_ID]
    for size, tags in ((10, own), (1, others)):
        tagged = [{"ResourceType": "volume", "Tags": tags}]
        ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=size, VolumeType="gp3", TagSpecifications=tagged)
    tagged = [{"ResourceType": "security-group", "Tags": own}]
    ec2.create_security_group(GroupName="tagged", Description="x", TagSpecifications=tagged)
    iam.create_role(RoleName="tagged", Path=machines.role_path(CLUSTER), AssumeRolePolicyDocument="{}")
    stored = record_bucket.bucket_of(CLUSTER)
    record_bucket.create(stored)
    # moto is reached without TLS, which the policy refuses.
    account.client("s3", REGION).delete_bucket_policy(Bucket=stored.name)
    record_bucket.write_json(stored, record_bucket.TAGS, machines.tags(CLUSTER))
    (found,) = discover.discover_clusters()
    assert found.cluster == CLUSTER
    assert found.has == {"volume": 1, "group": 1, "role": 1, "record": 1}
    month = costs.price_table().rows["ebs gp3"][REGION]
    assert found.per_hour == pytest.approx(round(month * 10 / 720, 4))
    assert found.since > 0
    assert discover.discover_clusters(found.cluster["home"]) == [found]


def test_a_cluster_exists_since_its_oldest_thing_and_has_no_price_if_one_is_unknown() -> None:
    tags = machines.tags(CLUSTER)
    machine = discover.TaggedResource("instance", tags, 5.0, costs.Amount(0.1))
    for amount, per_hour in ((costs.Amount(0.02), 0.12), (costs.Amount(unknown=("x",)), None)):
        (found,) = discover.grouped(REGION, [machine, discover.TaggedResource("volume", tags, 4.0, amount)])
        assert found.cluster == CLUSTER
        assert (found.has, found.since, found.per_hour) == ({"instance": 1, "volume": 1}, 4.0, per_hour)
