"""What carries our tags in a region, whosever it is.

IAM looks for no tags and is of no region: roles are found by their path. A bucket that keeps the record of a cluster which was
destroyed is kept on purpose.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import account, bucket, prices
from .facts import LIVE
from .prices import Amount, Disk, Rented

_PARTS = tuple(f"{account.PREFIX}{key}" for key in ("project", "stack", "cluster"))
_ROLES = "/tfdeploy/"
_GIB = 1 << 30
_HOURS_A_MONTH = 720.0


@dataclass(frozen=True)
class Thing:
    """One thing, and whose it is."""

    kind: str
    project: str
    stack: str
    cluster: str
    made: float = 0.0
    """In seconds since 1970; 0 where that is not told."""
    cost: Amount = field(default_factory=Amount)
    """For an hour."""
    kept: bool = False
    """Whether it keeps the record of a cluster that was destroyed."""


def things(region: str) -> list[Thing]:
    """All of them.

    Raises:
        SpecError: nobody is logged in, or may not ask that.
        Unreachable: AWS does not answer.
    """
    account.refuse_no_region(region)
    with account.answers(region):
        found = list(_of_ec2(region))
        found += account.listed(lambda: list(_files(region)))
        found += account.listed(lambda: list(_roles(region)))
        found += account.listed(lambda: list(_buckets(region)))
    return found


def _of_ec2(region: str) -> Iterator[Thing]:
    ec2 = account.client("ec2", region)
    ours = [{"Name": "tag-key", "Values": [_PARTS[-1]]}]
    live = [*ours, {"Name": "instance-state-name", "Values": list(LIVE)}]
    for item in _pages(ec2, "describe_instances", "Reservations", Filters=live):
        for one in item["Instances"]:
            rented = Rented(one["InstanceType"], one.get("InstanceLifecycle") == "spot", (), "PublicIpAddress" in one)
            # A stopped machine is not billed; its disks are.
            cost = prices.per_hour(rented, region) if one["State"]["Name"] in ("pending", "running") else Amount()
            yield _thing("instance", one["Tags"], one["LaunchTime"].timestamp(), cost)
    for one in _pages(ec2, "describe_volumes", "Volumes", Filters=ours):
        price = prices.of_disk(Disk(one["VolumeType"], one["Size"]), region)
        yield _thing("volume", one["Tags"], one["CreateTime"].timestamp(), _amount(price, f"{one['VolumeType']} disk"))
    for one in _pages(ec2, "describe_security_groups", "SecurityGroups", Filters=ours):
        yield _thing("group", one["Tags"])
    for one in ec2.describe_key_pairs(Filters=ours)["KeyPairs"]:
        yield _thing("key", one["Tags"], one["CreateTime"].timestamp() if "CreateTime" in one else 0.0)


def _files(region: str) -> Iterator[Thing]:
    for one in _pages(account.client("efs", region), "describe_file_systems", "FileSystems"):
        if _ours(one.get("Tags", [])):
            month = prices.table().rows["efs"].get(region)
            gib = one.get("SizeInBytes", {}).get("Value", 0) / _GIB
            price = None if month is None else month * gib / _HOURS_A_MONTH
            yield _thing("file system", one["Tags"], one["CreationTime"].timestamp(), _amount(price, "efs"))


def _roles(region: str) -> Iterator[Thing]:
    iam = account.client("iam", region)
    for kind, call, key in (
        ("role", "list_roles", "Roles"),
        ("profile", "list_instance_profiles", "InstanceProfiles"),
    ):
        for one in _pages(iam, call, key, PathPrefix=_ROLES):
            parts = one["Path"].strip("/").split("/")[1:]
            if len(parts) == len(_PARTS):
                yield Thing(kind, parts[0], parts[1], parts[2], one["CreateDate"].timestamp())


def _buckets(region: str) -> Iterator[Thing]:
    s3 = account.client("s3", region)
    for one in s3.list_buckets().get("Buckets", []):
        if one["Name"].startswith("tfdeploy-") and bucket.region_of(region, one["Name"]) == region:
            tags = bucket.tags_of(region, one["Name"])
            if _ours(tags):
                thing = _thing("bucket", tags, one["CreationDate"].timestamp())
                told = bucket.manifest(bucket.of(region, thing.project, thing.stack, thing.cluster))
                yield replace(thing, kept=told is not None and told.ended)


def _pages(client: Any, call: str, key: str, **asked: Any) -> Iterator[Any]:
    for page in client.get_paginator(call).paginate(**asked):
        yield from page[key]


def _ours(tags: Sequence[Mapping[str, str]]) -> bool:
    return set(_PARTS) <= set(account.key_of(tags))


def _thing(kind: str, tags: Sequence[Mapping[str, str]], made: float = 0.0, cost: Amount = Amount()) -> Thing:  # noqa: B008
    known = account.key_of(tags)
    project, stack, cluster = (known.get(part, "") for part in _PARTS)
    return Thing(kind, project, stack, cluster, made, cost)


def _amount(price: float | None, what: str) -> Amount:
    return Amount(unknown=(what,)) if price is None else Amount(price)
