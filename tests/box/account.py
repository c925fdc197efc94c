"""What an account holds, by kind: read from moto itself, so that looking is no call of its API."""

from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.efs.models import efs_backends
from moto.iam.models import iam_backends
from moto.s3.models import s3_backends

from tests.box.api import REGION


def ec2() -> Any:
    """Moto's EC2 of the box's region."""
    return ec2_backends[DEFAULT_ACCOUNT_ID][REGION]


def holdings() -> dict[str, set[str]]:
    """The ids or names of all that is there."""
    backend, efs = ec2(), efs_backends[DEFAULT_ACCOUNT_ID][REGION]
    iam = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    return {
        "instances": {one.id for one in backend.all_instances() if one.state != "terminated"},
        "key pairs": set(backend.key_pairs),
        "security groups": {one.id for one in backend.describe_security_groups()},
        "volumes": set(backend.volumes),
        "network interfaces": set(backend.enis),
        "launch templates": set(backend.launch_templates),
        "addresses": {one.allocation_id or one.public_ip for one in backend.addresses},
        "VPCs": set(backend.vpcs),
        "subnets": {one.id for one in backend.describe_subnets()},
        "route tables": set(backend.route_tables),
        "internet gateways": set(backend.internet_gateways),
        "EFS file systems": set(efs.file_systems_by_id),
        "EFS mount targets": set(efs.mount_targets_by_id),
        "IAM roles": {one.name for one in iam.roles.values()},
        "IAM instance profiles": {one.name for one in iam.instance_profiles.values()},
        "S3 buckets": _buckets(),
    }


def _buckets() -> set[str]:
    """The buckets, but for tfdeploy's where it is empty: it is the account's, and no cluster's."""
    found = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets
    shared = f"tfdeploy-{DEFAULT_ACCOUNT_ID}-{REGION}"
    return {name for name, bucket in found.items() if name != shared or bucket.keys}


def beyond(before: dict[str, set[str]]) -> dict[str, set[str]]:
    """What has come since; kinds of which nothing has come are left out."""
    return {kind: found - before[kind] for kind, found in holdings().items() if found - before[kind]}
