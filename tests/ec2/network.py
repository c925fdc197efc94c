"""A network and files of the user's, made by the program of the cluster with pulumi_aws, in the account that the stack names."""

from pathlib import Path

from tests.box.cloud import PROFILE_USER, Box
from tests.ec2.project import Ec2Project
from tests.integration.conftest import PROGRAM

ACCOUNT = "123456789012"
NETWORK = """\
import os
import pulumi_aws as aws

block = os.environ["BLOCK"]
vpc = aws.ec2.Vpc("vpc", cidr_block=block, enable_dns_hostnames=True)
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id)
table = aws.ec2.RouteTable("table", vpc_id=vpc.id, routes=[{"cidr_block": "0.0.0.0/0", "gateway_id": gateway.id}])
group = aws.ec2.SecurityGroup("files", description="NFS from the network", vpc_id=vpc.id)
aws.vpc.SecurityGroupIngressRule(
    "nfs", security_group_id=group.id, ip_protocol="tcp", from_port=2049, to_port=2049, cidr_ipv4=vpc.cidr_block
)
files = aws.efs.FileSystem("files", encrypted=True)
subnets, shared = {}, {}
for number, letter in enumerate("ab", 200):
    subnet = aws.ec2.Subnet(
        f"subnet-{letter}",
        vpc_id=vpc.id,
        cidr_block=block.replace(".0.0/16", f".{number}.0/24"),
        availability_zone=f"us-west-2{letter}",
    )
    route = aws.ec2.RouteTableAssociation(f"route-{letter}", subnet_id=subnet.id, route_table_id=table.id)
    target = aws.efs.MountTarget(
        f"target-{letter}", file_system_id=files.id, subnet_id=subnet.id, security_groups=[group.id]
    )
    # These two are known when the subnet has a route, and the files can be mounted.
    subnets[letter], shared[letter] = route.subnet_id, target.file_system_id
pulumi.export("files", files.id)
"""


class NetworkProject(Ec2Project):
    """Its program makes a VPC, two subnets and a file system, and hands their Outputs to the cluster."""

    zone = "a"
    """The letter of the zone in which the machines are."""

    def __init__(self, folder: Path, box: Box, image: str, name: str = "project") -> None:
        super().__init__(folder, box, image, name)
        self.env["BLOCK"] = str(box.subnet)
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
        self.configure("aws:maxRetries", "8")
        self.configure("aws:profile", "ml")
        self.configure("aws:allowedAccountIds[0]", ACCOUNT)
        self.configure("aws:defaultTags.tags.team", "ml")

    def configure(self, path: str, value: str) -> None:
        """`pulumi config set`."""
        done = self.call("config", "set", "--path", path, value, "--stack", self.stack)
        assert done.exit_code == 0, done.output

    def write(self, arguments: str, *rest: str) -> None:
        """Write the program, with the network before the cluster."""
        begin, rule, end = PROGRAM.partition("cluster = ")
        own = f"ec2={{'subnet_id': subnets[{self.zone!r}], 'efs': shared[{self.zone!r}]}}"
        super().write(f"{own}, {arguments}", *rest, f"{begin}{NETWORK}{rule}{end}")

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
