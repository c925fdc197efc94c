"""What no rule looks at: the advice of others that is left to the user, and the types that have nothing to be looked at."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Left:
    """Advice that a cluster does not follow by itself."""

    what: str
    ids: tuple[str, ...]
    why: str


LEFT = (
    Left(
        "Detailed monitoring of machines",
        ("AwsSolutions-EC28", "EC2InstanceDetailedMonitoringEnabled", "CKV_AWS_126"),
        "CloudWatch bills each machine for it, and how the job goes is in the record.",
    ),
    Left(
        "Termination protection",
        ("AwsSolutions-EC29",),
        "Machines end by themselves, and nothing may hold a bill open. What must last is in the record and on the shared files.",
    ),
    Left(
        "Keys of the user's own (KMS) instead of AWS's",
        ("S3DefaultEncryptionKMS", "CKV_AWS_145", "CKV_AWS_184", "CKV_AWS_189", "AWS-0027", "AWS-0132"),
        "Such a key costs, and who may use it is the account's matter; EBS takes the account's default key.",
    ),
    Left(
        "Egress to chosen addresses only",
        ("CKV_AWS_382", "AWS-0104"),
        "Images, packages and data come from addresses that only the user knows. Narrow it in the VPC (`vpc_id`, `subnet_id`).",
    ),
    Left(
        "The VPC: flow logs, not the default one, no public addresses given by its subnets",
        ("AwsSolutions-VPC7", "CKV2_AWS_11", "AWS-0101", "AWS-0164", "AWS-0178"),
        "A cluster makes no VPC: it takes the one that `vpc_id` or `subnet_id` names, else the default one.",
    ),
    Left(
        "A role for every machine",
        ("EC2InstanceProfileAttached", "CKV2_AWS_41"),
        "A machine that needs nothing of AWS has no right in it; `instance_profile` gives one.",
    ),
    Left(
        "Policies that stand for themselves instead of in a role",
        ("IAMNoInlinePolicy",),
        "A policy for one role goes when the role goes.",
    ),
    Left(
        "EBS optimization",
        ("EC2EBSOptimizedInstance", "CKV_AWS_135"),
        "Current types have it by default.",
    ),
    Left(
        "Backup plans for disks and shared files",
        ("EC2EBSInBackupPlan", "EFSInBackupPlan", "CKV2_AWS_9", "CKV2_AWS_18"),
        "Disks that are made with a machine hold nothing that must last; which checkpoints are worth a backup, the user knows.",
    ),
    Left(
        "The record's bucket: access logs, versions, replicas, life cycle, notifications",
        (
            "AwsSolutions-S1",
            "S3BucketLoggingEnabled",
            "S3BucketReplicationEnabled",
            "S3BucketVersioningEnabled",
            "CKV_AWS_18",
            "CKV_AWS_21",
            "CKV_AWS_144",
            "CKV2_AWS_61",
            "CKV2_AWS_62",
            "AWS-0089",
            "AWS-0090",
        ),
        "Logs need a second bucket that outlives the cluster; the record is written by one machine, and each life has a folder.",
    ),
)

OF_NO_INTEREST: Mapping[str, str] = {
    "tfdeploy:index:TensorFlowCluster": "the cluster itself, of which all else is a part",
    "pulumi:providers:aws": "names a region",
    "pulumi:providers:docker": "reaches an engine by ssh",
    "aws:ec2/volumeAttachment:VolumeAttachment": "a volume of the user's, encrypted or not when it was made",
    "docker:index/network:Network": "within the Swarm",
    "docker:index/remoteImage:RemoteImage": "within the Swarm",
    "docker:index/registryImage:RegistryImage": "in a registry of the user's",
    "docker:index/secret:Secret": "within the Swarm, whose managers keep it encrypted",
    "docker:index/serviceConfig:ServiceConfig": "the agent, the same for everybody",
    "pulumi-python:dynamic/tfdeploy:Archive": "the record's bucket: closed to the public (AwsSolutions-S2, CKV_AWS_53 to 56, AWS-0086, "
    "AWS-0087, AWS-0091, AWS-0093) and reached by TLS alone (AwsSolutions-S10), as the tests of `ec2/bucket.py` show",
    "pulumi-python:dynamic/tfdeploy:Run": "of this package's own, in no catalogue",
    "pulumi-python:dynamic/tfdeploy:Swarm": "of this package's own, in no catalogue",
    "pulumi-python:dynamic/tfdeploy:Sweeper": "of this package's own, in no catalogue",
    "pulumi-python:dynamic/tfdeploy:Task": "of this package's own, in no catalogue",
}
"""Types of resources that a cluster registers, and why no rule looks at them."""
