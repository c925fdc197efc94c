"""The clusters of a region, from the tags of their AWS resources; any computer may have created them. And the checks of
`tfdeploy doctor`: can this computer create machines on EC2, and reach them?

IAM cannot list by tag and has no region: roles are found by their path, and records by their folder in tfdeploy's bucket. The
retained record of a destroyed cluster is not part of a cluster.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ...errors import BackendError, SpecError
from ...paths import cluster_folder
from ..base import FAIL, OK, Check, ClusterRef, DiscoveredCluster
from ..discovery import LabelledObject, group_by_cluster
from ..docker.discover import provider
from . import costs, record_bucket
from .aws import account, api
from .aws.api import ROLES_PATH, pages, tag_values
from .aws.errors import AwsFailure, AwsRefusal, aws_errors, refuse_no_region
from .costs import Amount
from .machine import model, ssh
from .machine.model import LIVE

_GIB = 1 << 30


@dataclass(frozen=True)
class TaggedResource(LabelledObject):
    """An AWS resource with the tags of a cluster."""

    cost: Amount = field(default_factory=Amount)
    """Per hour."""


def tagged_resources(region: str) -> list[TaggedResource]:
    """All resources of clusters in a region.

    Raises:
        SpecError: no region, no credentials or no permission.
        Unreachable: AWS does not respond.
    """
    refuse_no_region(region)
    with aws_errors(region):
        resources = list(_in_ec2(region))
        resources += api.empty_if_denied(lambda: list(_file_systems(region)))
        resources += api.empty_if_denied(lambda: list(_roles(region)))
        resources += api.empty_if_denied(lambda: list(_records(region)))
    return resources


def _in_ec2(region: str) -> Iterator[TaggedResource]:
    ec2 = account.client("ec2", region)
    tagged = [{"Name": "tag-key", "Values": [model.CLUSTER_ID]}]
    live = [*tagged, {"Name": "instance-state-name", "Values": list(LIVE)}]
    for reservation in pages(ec2, "describe_instances", "Reservations", Filters=live):
        for item in reservation["Instances"]:
            cost = Amount()
            if item["State"]["Name"] in ("pending", "running"):  # a stopped machine is not billed; its disks are
                is_spot, public_ip = item.get("InstanceLifecycle") == "spot", "PublicIpAddress" in item
                cost = costs.hourly_cost(item["InstanceType"], region, spot=is_spot, public_ip=public_ip)
            yield TaggedResource("instance", tag_values(item["Tags"]), item["LaunchTime"].timestamp(), cost)
    for item in pages(ec2, "describe_volumes", "Volumes", Filters=tagged):
        price = costs.storage_price(f"ebs {item['VolumeType']}", item["Size"], region)
        cost = _amount(price, f"{item['VolumeType']} disk")
        yield TaggedResource("volume", tag_values(item["Tags"]), item["CreateTime"].timestamp(), cost)
    for item in pages(ec2, "describe_security_groups", "SecurityGroups", Filters=tagged):
        yield TaggedResource("group", tag_values(item["Tags"]))
    for item in ec2.describe_key_pairs(Filters=tagged)["KeyPairs"]:
        yield TaggedResource(
            "key", tag_values(item["Tags"]), item["CreateTime"].timestamp() if "CreateTime" in item else 0.0
        )


def _file_systems(region: str) -> Iterator[TaggedResource]:
    for item in pages(account.client("efs", region), "describe_file_systems", "FileSystems"):
        if model.CLUSTER_ID in tag_values(item.get("Tags", [])):
            gib = item.get("SizeInBytes", {}).get("Value", 0) / _GIB
            cost = _amount(costs.storage_price("efs", gib, region), "efs")
            yield TaggedResource("file system", tag_values(item["Tags"]), item["CreationTime"].timestamp(), cost)


def _roles(region: str) -> Iterator[TaggedResource]:
    iam = account.client("iam", region)
    for kind, operation, key in (
        ("role", "list_roles", "Roles"),
        ("profile", "list_instance_profiles", "InstanceProfiles"),
    ):
        for item in pages(iam, operation, key, PathPrefix=ROLES_PATH):
            name, _, cluster_id = item["Path"].removeprefix(ROLES_PATH).strip("/").rpartition("-")
            if name:
                tags = {model.CLUSTER_ID: cluster_id, f"{model.PREFIX}cluster": name}
                yield TaggedResource(kind, tags, item["CreateDate"].timestamp())


def _records(region: str) -> Iterator[TaggedResource]:
    """The folders of clusters in tfdeploy's bucket; others are not tfdeploy's, and a destroyed cluster's is not part of a cluster."""
    for folder in record_bucket.folders(region):
        bucket = record_bucket.locate(region, folder)
        tags = record_bucket.read_tags(bucket)
        if folder != f"{tags.get(f'{model.PREFIX}cluster', '')}-{tags.get(model.CLUSTER_ID, '')}":
            continue
        manifest = None
        with suppress(BackendError):
            manifest = record_bucket.read_manifest(bucket)
        if manifest is None or not manifest.ended:
            yield TaggedResource("record", tags, record_bucket.modified(bucket, record_bucket.TAGS))


def _amount(price: float | None, name: str) -> Amount:
    return Amount(unknown=(name,)) if price is None else Amount(price)


def discover_clusters(place: str = "") -> list[DiscoveredCluster]:
    """All clusters in a region; `place` is a cluster's home, a region's name, or `PROFILE@REGION`. Where it is empty, it is the region
    and the login of the environment; a computer without these has no clusters.

    Raises:
        SpecError: no region, no credentials or no permission.
        Unreachable: AWS does not respond.
    """
    with account.at(place) as region:
        try:
            discovered = grouped(region, tagged_resources(region))
        except AwsRefusal as error:
            if place or not error.is_not_set_up:
                raise
            return []
        for item in discovered:
            account.remember(item.cluster["home"])
    return discovered


def grouped(region: str, resources: Sequence[TaggedResource]) -> list[DiscoveredCluster]:
    """The clusters that resources belong to. Pure."""
    clusters = []
    for found in group_by_cluster("ec2", "", model.PREFIX, resources):
        cluster: ClusterRef = {**found.cluster, "home": ssh.home(region, cluster_folder(found.cluster))}
        own = (resource.cost for resource in resources if resource.labels[model.CLUSTER_ID] == cluster["id"])
        clusters.append(found._replace(cluster=cluster, per_hour=costs.total(own).known))
    return clusters


def health(place: str = "") -> list[Check]:
    """Pulumi's providers, the region, the credentials, ssh."""
    with account.at(place) as region:
        return [provider("aws"), provider("docker"), _region(region), _credentials(region), _ssh()]


def _region(region: str) -> Check:
    try:
        refuse_no_region(region)
    except SpecError as error:
        return Check("aws region", FAIL, error.wrong, error.remedy)
    return Check("aws region", OK, region)


def _credentials(region: str) -> Check:
    name = "aws credentials"
    if not region:
        return Check(name, FAIL, "not checked without a region", "Set a region first.")
    try:
        with aws_errors(region):
            identity = account.client("sts", region).get_caller_identity()
    except (AwsRefusal, AwsFailure) as error:
        return Check(name, FAIL, error.wrong, error.remedy)
    return Check(name, OK, str(identity["Arn"]))


def _ssh() -> Check:
    path = shutil.which("ssh")
    remedy = "Install the OpenSSH client: apt install openssh-client"
    return Check("ssh", OK, path) if path else Check("ssh", FAIL, "is not installed", remedy)
