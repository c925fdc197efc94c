"""The stand-in for Pulumi's AWS provider: real programs on the real SDK, against moto."""

import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.box.aws_project import AwsProject
from tests.box.profiles import replaced_profiles
from tests.integration.conftest import Call

PLUGIN = Path(__file__).parent / "provider"
REGION = "us-east-1"
IMAGE, ANOTHER_IMAGE = "ami-12c6146b", "ami-03cf127a"
SETTINGS = {
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
}

MACHINE = """\
import os
import pulumi
import pulumi_aws as aws

subnet = os.environ["SUBNET"]
key = aws.ec2.KeyPair("key", public_key=os.environ["PUBLIC_KEY"])
group = aws.ec2.SecurityGroup("group", description="machines", vpc_id=os.environ["VPC"], tags={"Name": "group"})
aws.vpc.SecurityGroupIngressRule(
    "ssh", security_group_id=group.id, ip_protocol="tcp", from_port=22, to_port=22, cidr_ipv4="10.0.0.0/8"
)
aws.vpc.SecurityGroupIngressRule(
    "esp", security_group_id=group.id, ip_protocol="50", referenced_security_group_id=group.id, description="overlay"
)
aws.vpc.SecurityGroupEgressRule("out", security_group_id=group.id, ip_protocol="-1", cidr_ipv4="0.0.0.0/0")
role = aws.iam.Role(
    "role",
    path="/machines/",
    assume_role_policy='{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",'
    ' "Principal": {"Service": "ec2.amazonaws.com"}}]}',
)
aws.iam.RolePolicy(
    "read",
    role=role.name,
    policy='{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}',
)
aws.iam.RolePolicyAttachment(
    "session", role=role.name, policy_arn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
)
profile = aws.iam.InstanceProfile("profile", role=role.name, path="/machines/")
other = aws.iam.InstanceProfile("other", role=role.name)
machine = aws.ec2.Instance(
    "machine",
    ami=os.environ["AMI"],
    instance_type=os.environ.get("TYPE", "t3.small"),
    key_name=key.key_name,
    subnet_id=subnet,
    vpc_security_group_ids=[group.id],
    iam_instance_profile={"none": "", "left out": None, "other": other.name}.get(os.environ.get("PROFILE"), profile.name),
    associate_public_ip_address=True,
    user_data=pulumi.Output.secret(os.environ.get("USER_DATA", "#!/bin/sh\\necho started\\n")),
    user_data_replace_on_change=bool(os.environ.get("REPLACE")),
    metadata_options={"http_tokens": "required", "http_put_response_hop_limit": 1},
    root_block_device={
        "volume_size": int(os.environ.get("SIZE", "30")),
        "volume_type": "gp3",
        "encrypted": True,
        "delete_on_termination": True,
    },
    instance_market_options={"market_type": "spot"},
    instance_initiated_shutdown_behavior="terminate",
    tags={"Name": os.environ.get("NAME", "machine")},
    opts=pulumi.ResourceOptions(replacement_trigger=os.environ.get("TRIGGER", "1")),
)
volume = aws.ebs.Volume("volume", availability_zone=machine.availability_zone, size=10, type="gp3", encrypted=True)
aws.ec2.VolumeAttachment(
    "held",
    device_name="/dev/sdf",
    instance_id=machine.id,
    volume_id=volume.id,
    opts=pulumi.ResourceOptions(delete_before_replace=True),
)
files = aws.efs.FileSystem("files", encrypted=True, tags={"Name": "files"})
aws.efs.MountTarget("mount", file_system_id=files.id, subnet_id=subnet, security_groups=[group.id])
vpc = aws.ec2.Vpc("vpc", cidr_block="10.20.0.0/16", enable_dns_hostnames=True, tags={"Name": os.environ.get("NAME", "vpc")})
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id)
routes = [{"cidr_block": block, "gateway_id": gateway.id} for block in os.environ.get("ROUTES", "0.0.0.0/0").split(",")]
table = aws.ec2.RouteTable("table", vpc_id=vpc.id, routes=routes)
part = aws.ec2.Subnet("part", vpc_id=vpc.id, cidr_block="10.20.1.0/24", map_public_ip_on_launch=True)
association = aws.ec2.RouteTableAssociation("route", subnet_id=part.id, route_table_id=table.id)
pulumi.export("table", table.id)
pulumi.export("vpc", vpc.id)
pulumi.export("part", association.subnet_id)
pulumi.export("account", aws.get_caller_identity().account_id)
pulumi.export("machine", machine.id)
pulumi.export("role", role.name)
pulumi.export("address", machine.private_ip)
pulumi.export("public", machine.public_ip)
pulumi.export("state", machine.instance_state)
pulumi.export("volume", volume.id)
pulumi.export("root", machine.root_block_device.volume_id)
pulumi.export("dns", files.dns_name)
"""
STEPS = 21
"""With the stack itself."""

pytestmark = pytest.mark.full


class World:
    """A moto of its own, with a Pulumi project on it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.project = AwsProject(folder, "project")
        ec2 = self.client("ec2")
        subnet = ec2.describe_subnets()["Subnets"][0]
        self.project.env |= SETTINGS | {
            "AWS_ENDPOINT_URL": self.endpoint,
            "PATH": f"{PLUGIN}:{os.environ['PATH']}",
            "SUBNET": subnet["SubnetId"],
            "VPC": subnet["VpcId"],
            "AMI": IMAGE,
            "PUBLIC_KEY": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAs6sEFGLrGHsaOKTt5dFgxI0wB5kmjYGtYgNgsHLwU1 a@b",
        }
        self.project.write("", program=MACHINE)
        self.project.init()
        self.first = self.leftovers()
        """What a new account has."""

    def client(self, service: str) -> Any:
        """A client of moto."""
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )

    def machines(self) -> dict[str, Any]:
        """The instances that there are."""
        reservations = self.client("ec2").describe_instances()["Reservations"]
        found = [machine for reservation in reservations for machine in reservation["Instances"]]
        return {one["InstanceId"]: one for one in found if one["State"]["Name"] != "terminated"}

    def leftovers(self) -> list[str]:
        """Whatever a program could have made."""
        ec2, efs, iam = (self.client(name) for name in ("ec2", "efs", "iam"))
        groups = ec2.describe_security_groups()["SecurityGroups"]
        return [
            *self.machines(),
            *(volume["VolumeId"] for volume in ec2.describe_volumes()["Volumes"]),
            *(pair["KeyName"] for pair in ec2.describe_key_pairs()["KeyPairs"]),
            *(group["GroupName"] for group in groups if group["GroupName"] != "default"),
            *(vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]),
            *(gateway["InternetGatewayId"] for gateway in ec2.describe_internet_gateways()["InternetGateways"]),
            *(table["RouteTableId"] for table in ec2.describe_route_tables()["RouteTables"]),
            *(subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]),
            *(system["FileSystemId"] for system in efs.describe_file_systems()["FileSystems"]),
            *(role["RoleName"] for role in iam.list_roles()["Roles"]),
            *(profile["InstanceProfileName"] for profile in iam.list_instance_profiles()["InstanceProfiles"]),
        ]

    def destroy(self) -> Call:
        """`pulumi destroy`."""
        return self.project.call("destroy", "--yes", "--skip-preview", "--stack", "test")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One project for all tests of this file: each goes on where the one before it has ended."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patch, replaced_profiles():
        # AWS's own policies, which moto has only when told so.
        patch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
        server.start()
        port = server.get_host_and_port()[1]
        # All of moto's servers in a process show the same account.
        urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/reset", data=b"").close()
        found = World(tmp_path_factory.mktemp("world") / "project", port)
        try:
            yield found
        finally:
            found.project.end_provider()
            server.stop()


def test_what_a_program_declares_is_made(world: World) -> None:
    before = world.leftovers()
    preview = world.project.call("preview", "--stack", "test")
    assert preview.exit_code == 0, preview.output
    assert world.leftovers() == before

    assert world.project.up().steps() == {"created": STEPS}
    outputs = world.project.outputs()
    machine = world.machines()[outputs["machine"]]
    assert outputs["state"] == machine["State"]["Name"] == "running"
    assert outputs["address"] == machine["PrivateIpAddress"]
    assert machine["MetadataOptions"]["HttpTokens"] == "required"
    assert machine["InstanceLifecycle"] == "spot"
    assert "/machines/profile-" in machine["IamInstanceProfile"]["Arn"]
    (attached,) = world.client("iam").list_attached_role_policies(RoleName=outputs["role"])["AttachedPolicies"]
    assert attached["PolicyName"] == "AmazonSSMManagedInstanceCore"

    exported = world.project.call("stack", "export", "--stack", "test").output
    assert machine["InstanceId"] in exported
    assert "echo started" not in exported
    assert world.project.up("--refresh", "--expect-no-changes").steps() == {"unchanged": STEPS}


def test_changes_in_place(world: World) -> None:
    first = world.project.outputs()
    world.project.env |= {
        "NAME": "renamed",
        "SIZE": "40",
        "TYPE": "t3.large",
        "USER_DATA": "#!/bin/sh\necho again\n",
        "PROFILE": "other",
        "ROUTES": "192.0.2.0/24",
    }
    done = world.project.up()
    assert done.steps() == {"updated": 3, "unchanged": STEPS - 3}, done.output

    second = world.project.outputs()
    assert (second["machine"], second["root"]) == (first["machine"], first["root"])
    machine = world.machines()[second["machine"]]
    assert machine["InstanceType"] == "t3.large"
    assert ":instance-profile/other-" in machine["IamInstanceProfile"]["Arn"]
    assert machine["Tags"] == [{"Key": "Name", "Value": "renamed"}]
    volume = world.client("ec2").describe_volumes(VolumeIds=[second["root"]])["Volumes"][0]
    assert volume["Size"] == 40
    world.project.env |= {"PROFILE": "left out"}
    assert world.project.up("--refresh", "--expect-no-changes").steps() == {"unchanged": STEPS}
    assert "IamInstanceProfile" in world.machines()[second["machine"]]
    world.project.env |= {"PROFILE": "none"}
    assert world.project.up().steps() == {"updated": 1, "unchanged": STEPS - 1}
    assert "IamInstanceProfile" not in world.machines()[second["machine"]]


def test_a_network(world: World) -> None:
    ec2, outputs = world.client("ec2"), world.project.outputs()
    assert outputs["account"] == "123456789012"
    dns = ec2.describe_vpc_attribute(VpcId=outputs["vpc"], Attribute="enableDnsHostnames")
    assert dns["EnableDnsHostnames"] == {"Value": True}
    (part,) = ec2.describe_subnets(SubnetIds=[outputs["part"]])["Subnets"]
    assert (part["VpcId"], part["MapPublicIpOnLaunch"]) == (outputs["vpc"], True)
    by_part = [{"Name": "association.subnet-id", "Values": [outputs["part"]]}]
    assert [one["RouteTableId"] for one in ec2.describe_route_tables(Filters=by_part)["RouteTables"]] == [
        outputs["table"]
    ]

    (table,) = ec2.describe_route_tables(RouteTableIds=[outputs["table"]])["RouteTables"]
    assert {route["DestinationCidrBlock"] for route in table["Routes"]} == {"10.20.0.0/16", "192.0.2.0/24"}


def test_the_tags_of_the_provider_reach_what_has_tags_and_are_not_the_programs(world: World) -> None:
    def tags() -> list[dict[str, str]]:
        found: list[dict[str, str]] = world.client("ec2").describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Tags"]
        return found

    vpc = world.project.outputs()["vpc"]
    settings = ("--path", "aws:defaultTags.tags.team", "ml", "--stack", "test")
    assert world.project.call("config", "set", *settings).exit_code == 0
    steps = world.project.up().steps()
    assert set(steps) == {"updated", "unchanged"}
    assert {"Key": "team", "Value": "ml"} in tags()
    assert {"Key": "Name", "Value": "renamed"} in tags()
    assert world.project.up("--refresh", "--expect-no-changes").steps() == {"unchanged": STEPS}
    assert world.project.call("config", "rm", "aws:defaultTags", "--stack", "test").exit_code == 0
    assert world.project.up().steps() == steps
    assert [tag["Key"] for tag in tags()] == ["Name"]


def test_an_account_that_the_configuration_does_not_allow_is_refused(world: World) -> None:
    path = "aws:allowedAccountIds[0]"
    world.project.call("config", "set", "--path", path, "210987654321", "--stack", "test")
    assert "AWS account ID not allowed: 123456789012" in world.project.call("preview", "--stack", "test").output
    assert world.project.call("config", "rm", "aws:allowedAccountIds", "--stack", "test").exit_code == 0


def test_changes_that_replace(world: World) -> None:
    seen = {world.project.outputs()["machine"]}
    for change in ({"AMI": ANOTHER_IMAGE}, {"TRIGGER": "2"}, {"REPLACE": "yes", "USER_DATA": "#!/bin/sh\n"}):
        world.project.env |= change
        done = world.project.up()
        assert done.steps()["replaced"] == 2, done.output
        outputs = world.project.outputs()
        assert outputs["machine"] not in seen
        assert list(world.machines()) == [outputs["machine"]]
        volume = world.client("ec2").describe_volumes(VolumeIds=[outputs["volume"]])["Volumes"][0]
        assert [one["InstanceId"] for one in volume["Attachments"]] == [outputs["machine"]]
        seen.add(outputs["machine"])


def test_what_is_done_by_hand(world: World) -> None:
    ec2 = world.client("ec2")
    first = world.project.outputs()["machine"]

    ec2.create_tags(Resources=[first], Tags=[{"Key": "Name", "Value": "another"}])
    assert world.project.up("--refresh").steps() == {"updated": 1, "unchanged": STEPS - 1}
    assert world.machines()[first]["Tags"] == [{"Key": "Name", "Value": "renamed"}]

    ec2.terminate_instances(InstanceIds=[first])
    done = world.project.up("--refresh")
    assert done.steps()["created"] == 2, done.output
    second = world.project.outputs()["machine"]
    assert list(world.machines()) == [second]


def test_all_of_it_is_deleted_and_what_is_gone_already_is_no_fault(world: World) -> None:
    ec2 = world.client("ec2")
    ec2.terminate_instances(InstanceIds=[world.project.outputs()["machine"]])
    ec2.delete_key_pair(KeyName=ec2.describe_key_pairs()["KeyPairs"][0]["KeyName"])
    done = world.destroy()
    assert done.exit_code == 0, done.output
    assert world.leftovers() == world.first


@pytest.mark.parametrize(
    ("resource", "complaint"),
    [
        (
            'aws.ec2.Instance("x", ami="ami-1", instance_type="t3.small", root_block_device={"volume_sizes": 8})',
            "not a property of InstanceRootBlockDevice",
        ),
        ('aws.s3.Bucket("x")', "the stand-in does not know aws:s3/bucket:Bucket"),
        ("aws.ec2.get_vpc(default=True)", "the stand-in does not know aws:ec2/getVpc:getVpc"),
    ],
)
def test_refused_in_a_program(world: World, resource: str, complaint: str) -> None:
    world.project.write("", program=f"import pulumi_aws as aws\n{resource}\n")
    assert complaint in world.project.call("preview", "--stack", "test").output
    assert world.leftovers() == world.first
