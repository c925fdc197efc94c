"""The actions of AWS's API that a user of a cluster on EC2 needs, in IAM's words: those that this package calls, and those that
Pulumi's AWS provider calls for each resource type. Tables only. `iam_policy` makes a policy of them.

What the provider calls was read in hashicorp/terraform-provider-aws, which pulumi-aws contains: facts, at the commits that are named.
Calls for arguments that no cluster sets are not in the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass

OWN: tuple[str, ...] = (
    "ec2:DeleteKeyPair",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteVolume",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeKeyPairs",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVolumes",
    "ec2:DescribeVpcs",
    "ec2:GetConsoleOutput",
    "ec2:TerminateInstances",
    "elasticfilesystem:DescribeFileSystems",
    "iam:ListAccountAliases",
    "iam:ListInstanceProfiles",
    "iam:ListRoles",
    "s3:CreateBucket",
    "s3:DeleteObject",
    "s3:GetBucketPolicy",
    "s3:GetBucketPublicAccessBlock",
    "s3:GetBucketTagging",
    "s3:GetObject",
    "s3:ListBucket",
    "s3:PutBucketPolicy",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutBucketTagging",
    "s3:PutObject",
    "servicequotas:GetServiceQuota",
    "ssm:GetParameter",
)
"""What this package itself calls for every cluster. `sts:GetCallerIdentity` needs no permission:
https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html"""

OWN_WITH_ROLES: tuple[str, ...] = (
    "iam:DeleteInstanceProfile",
    "iam:DeleteRole",
    "iam:DeleteRolePolicy",
    "iam:DetachRolePolicy",
    "iam:ListAttachedRolePolicies",
    "iam:ListRolePolicies",
    "iam:RemoveRoleFromInstanceProfile",
)
"""What `destroy` also calls where the cluster has roles."""

OWN_WITH_FILES: tuple[str, ...] = (
    "elasticfilesystem:DeleteFileSystem",
    "elasticfilesystem:DeleteMountTarget",
    "elasticfilesystem:DescribeMountTargets",
    "elasticfilesystem:UntagResource",
)
"""What `destroy` also calls where the cluster has a file system (`efs="new"`)."""

SESSIONS: tuple[str, ...] = ("ssm:ResumeSession", "ssm:StartSession", "ssm:TerminateSession")
"""What the AWS CLI calls for ssh with `connectivity="ssm"`.
https://docs.aws.amazon.com/systems-manager/latest/userguide/getting-started-restrict-access-quickstart.html"""

SSM_POLICY = "policy/AmazonSSMManagedInstanceCore"
"""The policy that the roles of machines have with `connectivity="ssm"`: the permissions of SSM's agent.
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSSMManagedInstanceCore.html"""


@dataclass(frozen=True)
class ResourceActions:
    """What the provider calls for the resources of a type."""

    source: str
    """The file, and the commit at which it was read."""
    actions: tuple[str, ...]


_SERVICES = "internal/service"
_INSTANCE = f"{_SERVICES}/ec2/ec2_instance.go@0015dfcd06d5d78e5e1c3cabe8cea837d379d1c7"
_GROUP = f"{_SERVICES}/ec2/vpc_security_group.go@01606926a0c0ab9174aec440f976a48b0baee722"
_RULE = f"{_SERVICES}/ec2/vpc_security_group_ingress_rule.go@00a322094b4b9ade8a81b244345dbcf4b52ee8d6"
_RULE_ACTIONS = ("ec2:CreateTags", "ec2:DeleteTags", "ec2:DescribeSecurityGroupRules", "ec2:ModifySecurityGroupRules")

INSTANCE, ATTACHMENT = "aws:ec2/instance:Instance", "aws:ec2/volumeAttachment:VolumeAttachment"
FILE_SYSTEM, MOUNT_TARGET = "aws:efs/fileSystem:FileSystem", "aws:efs/mountTarget:MountTarget"
ROLE, PROFILE = "aws:iam/role:Role", "aws:iam/instanceProfile:InstanceProfile"
ROLE_POLICY, ROLE_ATTACHMENT = "aws:iam/rolePolicy:RolePolicy", "aws:iam/rolePolicyAttachment:RolePolicyAttachment"

PROVIDER: Mapping[str, ResourceActions] = {
    "aws:ec2/keyPair:KeyPair": ResourceActions(
        f"{_SERVICES}/ec2/ec2_key_pair.go@05bc9541efe73ea58b95ad961676ed4aba3fb03f",
        ("ec2:CreateTags", "ec2:DeleteKeyPair", "ec2:DeleteTags", "ec2:DescribeKeyPairs", "ec2:ImportKeyPair"),
    ),
    "aws:ec2/securityGroup:SecurityGroup": ResourceActions(
        _GROUP,
        (
            "ec2:CreateSecurityGroup",
            "ec2:CreateTags",
            "ec2:DeleteSecurityGroup",
            "ec2:DeleteTags",
            # Interfaces of AWS's own services are looked for before a group is deleted.
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSecurityGroups",
            # A new group has a rule that allows all outgoing traffic, which is removed.
            "ec2:RevokeSecurityGroupEgress",
        ),
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": ResourceActions(
        _RULE, ("ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress", *_RULE_ACTIONS)
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": ResourceActions(
        _RULE, ("ec2:AuthorizeSecurityGroupEgress", "ec2:RevokeSecurityGroupEgress", *_RULE_ACTIONS)
    ),
    INSTANCE: ResourceActions(
        _INSTANCE,
        (
            "ec2:AssociateIamInstanceProfile",
            "ec2:CreateTags",
            "ec2:DeleteTags",
            "ec2:DescribeIamInstanceProfileAssociations",
            "ec2:DescribeImages",
            "ec2:DescribeInstanceAttribute",
            # For types with burstable performance.
            "ec2:DescribeInstanceCreditSpecifications",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            # Whether a launch template was used.
            "ec2:DescribeTags",
            "ec2:DescribeVolumes",
            "ec2:DescribeVolumesModifications",
            "ec2:DescribeVpcs",
            "ec2:DisassociateIamInstanceProfile",
            # Protection against termination is disabled before each termination.
            "ec2:ModifyInstanceAttribute",
            "ec2:ModifyVolume",
            "ec2:ReplaceIamInstanceProfileAssociation",
            "ec2:RunInstances",
            "ec2:TerminateInstances",
            "iam:PassRole",
        ),
    ),
    ATTACHMENT: ResourceActions(
        f"{_SERVICES}/ec2/ebs_volume_attachment.go@0620f2a6a126dfcbc4aecbc9a117b0fbea1656ff",
        ("ec2:AttachVolume", "ec2:DescribeInstances", "ec2:DescribeVolumes"),
    ),
    FILE_SYSTEM: ResourceActions(
        f"{_SERVICES}/efs/file_system.go@0389f4671dd9086cbe548d8eeabf0df30d1c38d9",
        (
            "elasticfilesystem:CreateFileSystem",
            "elasticfilesystem:DeleteFileSystem",
            "elasticfilesystem:DescribeFileSystems",
            "elasticfilesystem:DescribeLifecycleConfiguration",
            "elasticfilesystem:TagResource",
            "elasticfilesystem:UntagResource",
            # EFS creates its role in an account that has none.
            "iam:CreateServiceLinkedRole",
        ),
    ),
    MOUNT_TARGET: ResourceActions(
        f"{_SERVICES}/efs/mount_target.go@0593466d96e383de3f75587805537f6e590ebf4e",
        (
            "elasticfilesystem:CreateMountTarget",
            "elasticfilesystem:DeleteMountTarget",
            "elasticfilesystem:DescribeMountTargetSecurityGroups",
            "elasticfilesystem:DescribeMountTargets",
            # EFS requires these of its caller: https://docs.aws.amazon.com/efs/latest/ug/API_CreateMountTarget.html
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
        ),
    ),
    ROLE: ResourceActions(
        f"{_SERVICES}/iam/role.go@0040ea6911af00bea2cca6dbb14e86829826ad8e",
        (
            "iam:CreateRole",
            "iam:DeleteRole",
            "iam:DeleteRolePolicy",
            "iam:DetachRolePolicy",
            "iam:GetRole",
            "iam:GetRolePolicy",
            "iam:ListAttachedRolePolicies",
            "iam:ListInstanceProfilesForRole",
            "iam:ListRolePolicies",
            "iam:RemoveRoleFromInstanceProfile",
            "iam:TagRole",
            "iam:UntagRole",
        ),
    ),
    ROLE_POLICY: ResourceActions(
        f"{_SERVICES}/iam/role_policy.go@02f97af85f89a04e8ed89f5e8b64a9a67f3cfe07",
        ("iam:DeleteRolePolicy", "iam:GetRolePolicy", "iam:PutRolePolicy"),
    ),
    ROLE_ATTACHMENT: ResourceActions(
        f"{_SERVICES}/iam/role_policy_attachment.go@04c79849dbe7fbe76c3054b364357bcdaade9ac5",
        ("iam:AttachRolePolicy", "iam:DetachRolePolicy", "iam:ListAttachedRolePolicies"),
    ),
    PROFILE: ResourceActions(
        f"{_SERVICES}/iam/instance_profile.go@013f1736b90439e5a19567a87d3e5cd11858c420",
        (
            "iam:AddRoleToInstanceProfile",
            "iam:CreateInstanceProfile",
            "iam:DeleteInstanceProfile",
            "iam:GetInstanceProfile",
            "iam:GetRole",
            "iam:PassRole",
            "iam:RemoveRoleFromInstanceProfile",
            "iam:TagInstanceProfile",
            "iam:UntagInstanceProfile",
        ),
    ),
}
"""Resource type to what the provider calls for it. Each source is that of tests/box/provider/facts.toml, too."""

SPOT = ResourceActions(
    "internal/service/ec2/ec2_instance.go, lidor-k/terraform-provider-aws@ffe1cbf2bfca816eb2be841bc88e53e82b8bd4af",
    ("ec2:DescribeSpotInstanceRequests", "iam:CreateServiceLinkedRole"),
)
"""What is called for spot instances only. EC2 creates its role for them in an account that has none."""
