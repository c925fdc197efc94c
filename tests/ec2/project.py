"""A Pulumi project whose cluster stands on EC2 in a box, driven as a user drives it."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from tests.box.aws_project import AwsProject
from tests.box.cloud import Box, Instance
from tests.docker.project import GATE
from tests.engine.cli import DockerFailed
from tests.verbs import Verbs
from tests.waiting import until
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.backends.base import ClusterRef, ObservedState
from tfdeploy.backends.ec2.backend import BACKEND
from tfdeploy.backends.ec2.machine.ssh import home
from tfdeploy.backends.ec2.record_bucket import bucket_of
from tfdeploy.paths import cluster_folder
from tfdeploy.report.report import task_status

PLUGINS = Path(__file__).parents[1] / "box" / "provider"
SHARED = "/mnt/tfdeploy"
SWARM = """\
docker ps --all --format '{{.Names}} {{.Status}}'
docker node ls
docker service ps --no-trunc --format '{{.Name}} {{.Node}} {{.DesiredState}} {{.CurrentState}} {{.Error}}' \
    $(docker service ls --quiet)
dmesg 2>/dev/null | tail -n 5
true
"""


class Ec2Project(AwsProject):
    """The arguments that a test gives are for any backend; what is EC2's is added here."""

    def __init__(self, folder: Path, box: Box, image: str, name: str = "project") -> None:
        super().__init__(folder, f"{name}-{token_hex(3)}")
        self.box = box
        self.image = image
        self.env |= {**box.environment, "PATH": f"{PLUGINS}:{os.environ['PATH']}"}
        self.key = folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)], check=True)
        self.efs = self._shared()

    def _shared(self) -> str:
        """A file system of the user's in the default VPC (a project may have its own), in which the tasks count their starts."""
        efs, ec2 = self.box.client("efs"), self.box.client("ec2")
        name: str = efs.create_file_system(CreationToken=self.name)["FileSystemId"]
        for subnet in ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]:
            efs.create_mount_target(FileSystemId=name, SubnetId=subnet["SubnetId"])
        self.count_in(name)
        return name

    def count_in(self, name: str) -> None:
        """Have the tasks count in a folder of a file system."""
        counter = self.box.efs(name) / "counter"
        counter.mkdir(parents=True)
        counter.chmod(0o777)
        (self.folder / "counter").rmdir()
        (self.folder / "counter").symlink_to(counter)

    def write(self, arguments: str, *rest: str) -> None:
        """Write the Pulumi program and what its tasks run."""
        own = {
            "backend": "ec2",
            "ec2": {
                "instance_type": "m7i.large",
                "ssh_public_key": f"{self.key}.pub",
                "ssh_cidrs": ["127.0.0.0/8"],
                "efs": self.efs,
            },
            "container": {"image": self.image, "volumes": [f"{SHARED}/counter:{self.folder}/counter"]},
        }
        super().write(", ".join([*(f"{key}={value!r}" for key, value in own.items()), arguments]), *rest)

    @property
    def cluster(self) -> Any:
        """The handle of the project's cluster."""
        ref = self.ref()
        return {**ref, "backend": "ec2", "home": home("us-west-2", cluster_folder(ref))}

    def machine(self, name: str) -> Instance:
        """The instance of one machine that is there now."""
        live = [one for one in self.box.instances() if one.name == name and one.state != "terminated"]
        assert len(live) == 1, live
        return live[0]

    def look(self, log_lines: int = 0) -> ObservedState:
        """One look, without Pulumi."""
        return BACKEND.runner.observe(self.cluster, "", ViewRequest(log_lines))

    def sees(self) -> dict[str, str]:
        """Hostname to status, as a look has it now."""
        sight = self.look()
        job = sight.view.run_state
        return {name: task_status(task, sight) for name, task in job.tasks.items()} if job else {}

    def sees_machines(self) -> dict[str, str]:
        """Machine to status, of those that a cluster of one ps and two workers has."""
        sight = self.look()
        names = ("test-ps-m0", "test-worker-m0", "test-worker-m1")
        return {name: sight.machines.status(name) for name in names}

    def explained(self) -> str:
        """What `tfdeploy explain` prints."""
        return Verbs(self.program, self.env).call("explain")[1].decode()

    def until_running(self, *hostnames: str) -> None:
        """Wait until a look says that these tasks run."""
        until(
            lambda: all(self.sees().get(name) == "running" for name in hostnames),
            f"{hostnames} running",
            seen=lambda: f"{self.sees()}\n{self._swarm()}",
        )

    def _swarm(self) -> str:
        """What the machines' engines know of the Swarm, its tasks and their errors."""
        live = [one for one in self.box.instances() if one.name.startswith("test-") and one.state == "running"]
        return "\n".join(f"{one.name} {one.private_ip}: {self._engine(one)}" for one in live)

    def _engine(self, instance: Instance) -> str:
        try:
            return self.box.run(instance.id, "sh", "-c", SWARM)
        except DockerFailed as failed:
            return str(failed)

    def open(self) -> None:
        """Let gated programs end."""
        (self.folder / "counter" / GATE).touch()

    def assert_nothing_left(self) -> None:
        """Nothing in EC2 carries the project's tags."""
        assert self.left() == {}

    def left(self) -> dict[str, list[str]]:
        """What in AWS carries the project's tags, or its path, by kind."""
        return left(self.box, self.name, self.refs())

    def stored(self) -> dict[str, bytes]:
        """What is in the cluster's folder of the bucket: the path of an object, and its content."""
        s3, bucket = self.box.client("s3"), bucket_of(self.cluster)
        if bucket.name not in {one["Name"] for one in s3.list_buckets()["Buckets"]}:
            return {}
        found = s3.list_objects_v2(Bucket=bucket.name, Prefix=f"{bucket.folder}/").get("Contents", [])
        contents = {one["Key"]: s3.get_object(Bucket=bucket.name, Key=one["Key"])["Body"].read() for one in found}
        return {key.removeprefix(f"{bucket.folder}/"): content for key, content in contents.items()}

    def described(self, name: str) -> dict[str, Any]:
        """What EC2 says of a machine."""
        ids = [self.machine(name).id]
        found: dict[str, Any] = self.box.client("ec2").describe_instances(InstanceIds=ids)["Reservations"][0]
        instance: dict[str, Any] = found["Instances"][0]
        return instance

    def ports(self) -> set[int]:
        """The first ports that the cluster's security group lets in."""
        (group,) = self.left()["groups"]
        asked = [{"Name": "group-id", "Values": [group]}]
        rules = self.box.client("ec2").describe_security_group_rules(Filters=asked)["SecurityGroupRules"]
        return {rule["FromPort"] for rule in rules if not rule["IsEgress"]}

    def clear(self) -> None:
        """Take away the cluster, without Pulumi, and end the provider."""
        self.end_provider()
        BACKEND.runner.delete_all(self.cluster, "", {"volumes": False, "record": False})

    def clean(self) -> None:
        """Take away whatever the test left, without Pulumi."""
        self.clear()
        efs = self.box.client("efs")
        for target in efs.describe_mount_targets(FileSystemId=self.efs)["MountTargets"]:
            efs.delete_mount_target(MountTargetId=target["MountTargetId"])
        efs.delete_file_system(FileSystemId=self.efs)


def left(box: Box, project: str, refs: Sequence[ClusterRef]) -> dict[str, list[str]]:
    """What in AWS carries a project's tags, or its path, by kind."""
    mine = [{"Name": "tag:tfdeploy:project", "Values": [project]}]
    ec2 = box.client("ec2")
    instances = [
        item["InstanceId"]
        for group in ec2.describe_instances(Filters=mine)["Reservations"]
        for item in group["Instances"]
        if item["State"]["Name"] != "terminated"
    ]
    iam = box.client("iam")
    paths = [f"/tfdeploy/{cluster_folder(ref)}/" for ref in refs]
    found = {
        "instances": instances,
        "groups": [one["GroupId"] for one in ec2.describe_security_groups(Filters=mine)["SecurityGroups"]],
        "keys": [one["KeyPairId"] for one in ec2.describe_key_pairs(Filters=mine)["KeyPairs"]],
        "volumes": [one["VolumeId"] for one in ec2.describe_volumes(Filters=mine)["Volumes"]],
        "roles": [role["RoleName"] for path in paths for role in iam.list_roles(PathPrefix=path)["Roles"]],
    }
    return {kind: names for kind, names in found.items() if names}
