"""What machines may do in AWS: the one that manages may put the record into its bucket; all may be reached through SSM, where
that is asked for; and nothing else."""

import json
from collections.abc import Mapping, Set

import pulumi
import pulumi_aws as aws

from ...ec2 import account, bucket, roles
from ...instances import SSM
from . import archive, reach
from .here import Here

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
}

_CORE = "policy/AmazonSSMManagedInstanceCore"
"""What SSM's agent needs.
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSSMManagedInstanceCore.html"""

_PURPOSES = {account.MASTER: "it keeps the record", account.WORKER: "it is reached through SSM"}


def profiles(here: Here, made: archive.Archive, parts: Set[str]) -> Mapping[str, pulumi.Input[str]]:
    """Role of a machine to the name of its instance profile: the user's own, else one that is registered where the role needs
    it; `parts` are the roles that there are."""
    given = here.fleet.instance_profile
    if given:
        return dict.fromkeys(parts, given)
    needing = [part for part in sorted(parts) if part == account.MASTER or here.fleet.access == SSM]
    return {part: _profile(here, made, part) for part in needing}


def _profile(here: Here, made: archive.Archive, part: str) -> pulumi.Output[str]:
    cluster = here.cluster
    name = f"{here.name}-{'manager' if part == account.MASTER else 'worker'}"
    path = roles.path(cluster["project"], cluster["stack"], cluster["name"])
    role = aws.iam.Role(
        name,
        description=f"A machine of the TensorFlow cluster {here.name}: {_PURPOSES[part]}",
        path=path,
        assume_role_policy=json.dumps(_TRUST),
        # An update that was killed may have made a policy that no state knows, and AWS deletes no role that has one.
        force_detach_policies=True,
        tags=here.tags(),
        opts=here.opts,
    )
    rights: list[pulumi.Resource] = []
    if part == account.MASTER:
        there = pulumi.ResourceOptions.merge(here.opts, pulumi.ResourceOptions(depends_on=[made]))
        policy = _may_put(archive.of(cluster))
        rights.append(aws.iam.RolePolicy(f"{name}-record", role=role.name, policy=policy, opts=there))
    if here.fleet.access == SSM:
        core = f"arn:{account.partition(reach.region(cluster))}:iam::aws:{_CORE}"
        rights.append(aws.iam.RolePolicyAttachment(f"{name}-ssm", role=role.name, policy_arn=core, opts=here.opts))
    # An agent that finds itself without its rights sleeps for long before it asks again.
    after = pulumi.ResourceOptions.merge(here.opts, pulumi.ResourceOptions(depends_on=rights))
    found = aws.iam.InstanceProfile(f"{name}-profile", path=path, role=role.name, tags=here.tags(), opts=after)
    return pulumi.Output.from_input(found.name)


def _may_put(where: bucket.Bucket) -> str:
    allowed = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": f"{bucket.arn(where)}/{bucket.PREFIX}*"}
    mine = {"Condition": {"StringEquals": {"s3:ResourceAccount": where.owner}}}
    return json.dumps({"Version": "2012-10-17", "Statement": [{**allowed, **mine}]})
