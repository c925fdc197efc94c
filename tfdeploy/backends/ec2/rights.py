"""What machines may do in AWS: the one that manages may put the record into its bucket, and nothing else."""

import json

import pulumi
import pulumi_aws as aws

from ...ec2 import bucket, roles
from . import archive
from .here import Here

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
}


def profile(here: Here, made: archive.Archive) -> pulumi.Output[str]:
    """Register the role of the machine that manages; the name of its instance profile."""
    cluster, name = here.cluster, f"{here.name}-manager"
    path = roles.path(cluster["project"], cluster["stack"], cluster["name"])
    role = aws.iam.Role(
        name,
        description=f"The machine that manages the TensorFlow cluster {here.name}: it keeps the record",
        path=path,
        assume_role_policy=json.dumps(_TRUST),
        tags=here.tags(),
        opts=here.opts,
    )
    after = pulumi.ResourceOptions.merge(here.opts, pulumi.ResourceOptions(depends_on=[made]))
    aws.iam.RolePolicy(f"{name}-record", role=role.name, policy=_may_put(archive.of(cluster)), opts=after)
    found = aws.iam.InstanceProfile(f"{name}-profile", path=path, role=role.name, tags=here.tags(), opts=here.opts)
    return pulumi.Output.from_input(found.name)


def _may_put(where: bucket.Bucket) -> str:
    allowed = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": f"{bucket.arn(where)}/{bucket.PREFIX}*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
