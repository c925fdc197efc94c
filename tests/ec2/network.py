"""A network of the user's, and files that the program of the cluster makes with pulumi_aws, in the account that the stack names."""

from pathlib import Path

from tests.box.cloud import PROFILE_USER, Box
from tests.ec2.project import Ec2Project
from tests.integration.conftest import PROGRAM

ACCOUNT = "123456789012"
FILES = """\
import os
import pulumi_aws as aws

subnets = {letter: os.environ[f"SUBNET_{letter}"] for letter in "ab"}
group = aws.ec2.SecurityGroup("files", description="NFS from the network", vpc_id=os.environ["VPC"])
aws.vpc.SecurityGroupIngressRule(
    "nfs", security_group_id=group.id, ip_protocol="tcp", from_port=2049, to_port=2049, cidr_ipv4=os.environ["BLOCK"]
)
files = aws.efs.FileSystem("files", encrypted=True)
shared = {}
for letter, subnet in subnets.items():
    target = aws.efs.MountTarget(
        f"target-{letter}", file_system_id=files.id, subnet_id=subnet, security_groups=[group.id]
    )
    # Known when the files can be mounted.
    subnets[letter] = target.id.apply(lambda _, subnet=subnet: subnet)
    shared[letter] = target.file_system_id
pulumi.export("files", files.id)
"""


class NetworkProject(Ec2Project):
    """Its program makes a file system in a VPC with two subnets, and passes Outputs to the cluster."""

    zone = "a"
    """The letter of the zone in which the machines are."""

    def __init__(self, folder: Path, box: Box, image: str, name: str = "project") -> None:
        super().__init__(folder, box, image, name)
        ec2, block = box.client("ec2"), str(box.subnet)
        self.vpc = ec2.create_vpc(CidrBlock=block)["Vpc"]["VpcId"]
        self.env |= {"BLOCK": block, "VPC": self.vpc}
        for number, letter in enumerate("ab", 200):
            part = {"CidrBlock": block.replace(".0.0/16", f".{number}.0/24"), "AvailabilityZone": f"us-west-2{letter}"}
            self.env[f"SUBNET_{letter}"] = ec2.create_subnet(VpcId=self.vpc, **part)["Subnet"]["SubnetId"]
        # Only the profile that the stack names has keys.
        for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del self.env[key]
        profiles = folder / "aws.ini"
        self.env["AWS_CONFIG_FILE"] = str(profiles)
        profiles.write_text(f"[profile ml]\naws_access_key_id = {PROFILE_USER}\naws_secret_access_key = box\n")

    def _shared(self) -> str:
        return ""

    def init(self) -> None:
        """Make the stack, with the settings of the AWS provider."""
        super().init()
        self.set("aws:maxRetries", "8", "--path")
        self.set("aws:profile", "ml", "--path")
        self.set("aws:allowedAccountIds[0]", ACCOUNT, "--path")
        self.set("aws:defaultTags.tags.team", "ml", "--path")

    def write(self, arguments: str, *rest: str) -> None:
        """Write the program, with the files before the cluster."""
        begin, rule, end = PROGRAM.partition("cluster = ")
        own = f"ec2={{'subnet_id': subnets[{self.zone!r}], 'efs': shared[{self.zone!r}]}}"
        super().write(f"{own}, {arguments}", *rest, f"{begin}{FILES}{rule}{end}")

    def clean(self) -> None:
        """Take away the cluster, without Pulumi; the network and the files end with the box."""
        self.clear()

    def share(self) -> None:
        """Have the tasks count in the program's file system, once it is there."""
        self.efs = next(
            one["FileSystemId"]
            for one in self.box.client("efs").describe_file_systems()["FileSystems"]
            if {"Key": "team", "Value": "ml"} in one["Tags"]
        )
        self.count_in(self.efs)
