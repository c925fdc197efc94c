"""The permissions that a call of AWS's API needs, in IAM's words.

https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
"""

from collections.abc import Collection

PREFIXES = {"efs": "elasticfilesystem", "service-quotas": "servicequotas"}
"""Service, as in boto3, to its name in IAM; the others have one name."""

OF_S3 = {
    "DeleteObjects": "DeleteObject",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
}
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html"""

FREE = frozenset({"sts:GetCallerIdentity"})
"""What needs no permission."""

_TAGGING = {
    "ec2:RunInstances": "ec2:CreateTags",
    "ec2:CreateSecurityGroup": "ec2:CreateTags",
    "ec2:ImportKeyPair": "ec2:CreateTags",
    "ec2:CreateVolume": "ec2:CreateTags",
    "ec2:AuthorizeSecurityGroupIngress": "ec2:CreateTags",
    "ec2:AuthorizeSecurityGroupEgress": "ec2:CreateTags",
    "elasticfilesystem:CreateFileSystem": "elasticfilesystem:TagResource",
    "iam:CreateRole": "iam:TagRole",
    "iam:CreateInstanceProfile": "iam:TagInstanceProfile",
}
"""What a call needs besides when it sets tags."""

_PASSING = frozenset(
    {
        "ec2:RunInstances",
        "ec2:AssociateIamInstanceProfile",
        "ec2:ReplaceIamInstanceProfileAssociation",
        "iam:AddRoleToInstanceProfile",
    }
)
"""Calls that pass a role where they name one."""

_BESIDES = {
    "elasticfilesystem:CreateMountTarget": {
        "ec2:CreateNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
    },
    "elasticfilesystem:DeleteMountTarget": {"ec2:DeleteNetworkInterface"},
}
"""https://docs.aws.amazon.com/efs/latest/ug/API_CreateMountTarget.html"""


def iam_actions(service: str, operation: str, parameters: Collection[str] = ()) -> set[str]:
    """The actions that a call needs; `parameters` are the names of those that it has, as on the wire."""
    if service == "s3":
        return {f"s3:{OF_S3.get(operation, operation)}"}
    action = f"{PREFIXES.get(service, service)}:{operation}"
    tagging = any(name.startswith(("TagSpecification", "Tags")) for name in parameters)
    passing = action == "iam:AddRoleToInstanceProfile" or any(
        name.startswith("IamInstanceProfile") for name in parameters
    )
    actions = {action}
    if tagging and action in _TAGGING:
        actions.add(_TAGGING[action])
    if passing and parameters and action in _PASSING:
        actions.add("iam:PassRole")
    return (actions | (_BESIDES.get(action, set()) if parameters else set())) - FREE
