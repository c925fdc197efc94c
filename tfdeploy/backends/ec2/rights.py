"""What machines may do in AWS: the one that manages may put the record into its bucket, and nothing else."""

import json

import pulumi
import pulumi_aws as aws

from ...ec2 import bucket, roles
from .archive import Archive
from .here import Here

_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
}


def profile(here: Here, archive: Archive) -> pulumi.Output[str]:
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
    aws.iam.RolePolicy(f"{name}-record", role=role.name, policy=archive.arn.apply(_may_put), opts=here.opts)
    made = aws.iam.InstanceProfile(f"{name}-profile", path=path, role=role.name, tags=here.tags(), opts=here.opts)
    return pulumi.Output.from_input(made.name)


def _may_put(arn: str) -> str:
    allowed = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": f"{arn}/{bucket.PREFIX}*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
