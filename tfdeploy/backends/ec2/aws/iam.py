"""The permissions of machines in AWS: the manager may put its own cluster's record into the bucket, and with
`connectivity="ssm"` all machines may use SSM. Nothing else."""

import json
from collections.abc import Mapping, Set

import pulumi
import pulumi_aws as aws

from ....spec.ec2 import SSM
from .. import record_bucket
from ..machine import model, ssh
from ..machine.machines import role_path
from ..resource_context import ResourceContext
from ..shared_bucket import BucketFolder
from . import iam_policy
from .iam_policy import SSM_POLICY

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
}

_PURPOSES = {model.MASTER: "stores the record", model.WORKER: "reached through SSM"}


def instance_profiles(
    context: ResourceContext, bucket: record_bucket.RecordBucket, roles: Set[str]
) -> Mapping[str, pulumi.Input[str]]:
    """Role of a machine (`MASTER`, `WORKER`) to the name of its instance profile: the user's own, else one that is created for
    the roles that need it."""
    profile = context.ec2.instance_profile
    if profile:
        return dict.fromkeys(roles, profile)
    needing = [role for role in sorted(roles) if role == model.MASTER or context.ec2.connectivity == SSM]
    return {role: _instance_profile(context, bucket, role) for role in needing}


def _instance_profile(
    context: ResourceContext, bucket: record_bucket.RecordBucket, machine_role: str
) -> pulumi.Output[str]:
    cluster = context.cluster
    name = f"{context.name}-{'manager' if machine_role == model.MASTER else 'worker'}"
    path = role_path(cluster)
    role = aws.iam.Role(
        name,
        description=f"A machine of the TensorFlow cluster {context.name}: {_PURPOSES[machine_role]}",
        path=path,
        assume_role_policy=json.dumps(_TRUST),
        # A killed update may have created a policy that no state knows, and AWS deletes no role that has one.
        force_detach_policies=True,
        tags=context.tags(),
        opts=context.opts,
    )
    policies: list[pulumi.Resource] = []
    if machine_role == model.MASTER:
        after_bucket = pulumi.ResourceOptions.merge(context.opts, pulumi.ResourceOptions(depends_on=[bucket]))
        document = put_record(record_bucket.bucket_of(cluster))
        policies.append(aws.iam.RolePolicy(f"{name}-record", role=role.name, policy=document, opts=after_bucket))
    if context.ec2.connectivity == SSM:
        arn = f"arn:{iam_policy.partition(ssh.region(cluster))}:iam::aws:{SSM_POLICY}"
        policies.append(aws.iam.RolePolicyAttachment(f"{name}-ssm", role=role.name, policy_arn=arn, opts=context.opts))
    # SSM's agent sleeps for a long time when it starts without its permissions.
    after_policies = pulumi.ResourceOptions.merge(context.opts, pulumi.ResourceOptions(depends_on=policies))
    profile = aws.iam.InstanceProfile(
        f"{name}-profile", path=path, role=role.name, tags=context.tags(), opts=after_policies
    )
    return pulumi.Output.from_input(profile.name)


def put_record(bucket: BucketFolder) -> str:
    """The policy of the manager's machine: it may write its cluster's record, and neither read nor list anything."""
    statement = {
        "Effect": "Allow",
        "Action": "s3:PutObject",
        "Resource": f"{bucket.arn}{record_bucket.PREFIX}*",
        "Condition": {"StringEquals": {"s3:ResourceAccount": bucket.owner}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
