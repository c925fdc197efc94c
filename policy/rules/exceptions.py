"""What no rule checks: advice that is left to the user, and types without anything to check."""

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
        "CloudWatch bills each machine for it, and the record contains the progress of the run.",
    ),
    Left(
        "Termination protection",
        ("AwsSolutions-EC29",),
        "Machines terminate themselves, and nothing may prevent that. What must last is in the record and on the shared files.",
    ),
    Left(
        "The user's own keys (KMS) instead of AWS's",
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
        "A cluster creates no VPC: it uses the one that `vpc_id` or `subnet_id` names, else the default one.",
    ),
    Left(
        "A role for every machine",
        ("EC2InstanceProfileAttached", "CKV2_AWS_41"),
        "A machine that needs no AWS service has no permissions; `instance_profile` grants some.",
    ),
    Left(
        "Separate policies instead of inline policies",
        ("IAMNoInlinePolicy",),
        "A policy for one role is deleted with the role.",
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
        "The bucket of records: access logs, versions, replicas, life cycle, notifications",
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
        "Logs need a second bucket; a record is written by one machine. An update does not change what the account sets itself.",
    ),
)

OF_NO_INTEREST: Mapping[str, str] = {
    "tfdeploy:index:TensorFlowCluster": "the cluster itself, the parent of all other resources",
    "pulumi:index:Stash": "the id of the cluster and who created it, in the state of the stack alone",
    "pulumi:providers:docker": "reaches an engine by ssh",
    "aws:ec2/volumeAttachment:VolumeAttachment": "a user's volume, encrypted or not when it was created",
    "docker:index/network:Network": "within the Swarm",
    "docker:index/remoteImage:RemoteImage": "within the Swarm",
    "pulumi-python:dynamic/tfdeploy:Image": "within the Swarm; its Dockerfile has the base image and the requirements alone",
    "docker:index/registryImage:RegistryImage": "in the user's registry",
    "docker:index/secret:Secret": "within the Swarm; its managers store it encrypted",
    "docker:index/serviceConfig:ServiceConfig": "the agent, the same for everybody",
    "pulumi-python:dynamic/tfdeploy:SshKey": "exists in the state of the stack alone, where its private half is a secret",
    "pulumi-python:dynamic/tfdeploy:RecordBucket": "closed to the public (AwsSolutions-S2, CKV_AWS_53 to 56, AWS-0086, "
    "AWS-0087, AWS-0091, AWS-0093) and reached by TLS alone (AwsSolutions-S10), as the tests of `shared_bucket` show",
    "pulumi-python:dynamic/tfdeploy:Run": "defined by this package, in no catalogue",
    "pulumi-python:dynamic/tfdeploy:Swarm": "defined by this package, in no catalogue",
    "pulumi-python:dynamic/tfdeploy:Cleanup": "defined by this package, in no catalogue",
    "pulumi-python:dynamic/tfdeploy:Task": "defined by this package, in no catalogue",
}
"""Types of resources that a cluster registers, and why no rule checks them."""
