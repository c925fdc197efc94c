"""What the account's owner deletes by hand while a training runs: it is named, and `pulumi up --refresh` makes it again."""

import pytest

from tests.ec2.project import Ec2Project
from tests.ec2.training import ALONE, STEPS, until_resumed
from tests.waiting import until
from tfdeploy.backends.ec2.record_bucket import MANIFEST, bucket_of

pytestmark = pytest.mark.full

MACHINE = "test-worker-m0"


def delete_profile(project: Ec2Project) -> None:
    """Delete the manager's instance profile."""
    iam = project.box.client("iam")
    name = project.described(MACHINE)["IamInstanceProfile"]["Arn"].rpartition("/")[2]
    for role in iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
    iam.delete_instance_profile(InstanceProfileName=name)


def delete_bucket(project: Ec2Project) -> None:
    """Delete the bucket with all that is in it."""
    s3, bucket = project.box.client("s3"), bucket_of(project.cluster)
    for path in project.stored():
        s3.delete_object(Bucket=bucket.name, Key=f"{bucket.folder}/{path}")
    s3.delete_bucket(Bucket=bucket.name)


def key_pair_names(project: Ec2Project) -> set[str]:
    """The names of the key pairs of the account."""
    return {pair["KeyName"] for pair in project.box.client("ec2").describe_key_pairs()["KeyPairs"]}


def upload_now(project: Ec2Project) -> None:
    """Have the machine upload its record now, not in five minutes."""
    project.box.run(project.machine(MACHINE).id, "systemctl", "restart", "tfdeploy-watchdog")


def test_a_bucket_that_is_gone_is_named_within_minutes_and_made_again(project: Ec2Project) -> None:
    project.write(ALONE, STEPS)
    project.up()
    until_resumed(project, "worker-0", least=0)
    until(lambda: MANIFEST in project.stored(), "the record is in S3")
    delete_bucket(project)
    upload_now(project)
    until(lambda: "NoSuchBucket" in project.look().not_stored, "the refusal is known", 150.0)
    assert "cannot be stored" in project.explained()
    assert "cannot be stored" in project.up().output
    done = project.up("--refresh")
    assert done.touched() == {"test-record-bucket"}, done.output
    until(lambda: MANIFEST in project.stored(), "the record is in S3 again")
    until(lambda: not project.look().not_stored, "it is known to be stored", 150.0)
    assert project.counts() == {"worker-0": 1}


def test_a_key_pair_that_is_gone_and_tags_that_no_plan_reads_replace_no_machine(project: Ec2Project) -> None:
    ec2, machine = project.box.client("ec2"), project.machine(MACHINE).id
    before = project.described(MACHINE)
    for pair in ec2.describe_key_pairs()["KeyPairs"]:
        ec2.delete_key_pair(KeyPairId=pair["KeyPairId"])
    changed = [{"Key": key, "Value": "another"} for key in ("tfdeploy:owner", "tfdeploy:generation", "of-the-users")]
    ec2.create_tags(Resources=[machine], Tags=changed)
    project.up("--refresh")
    after = project.described(MACHINE)
    assert after["InstanceId"] == machine
    assert key_pair_names(project) == {before["KeyName"]}
    assert sorted(map(str, after["Tags"])) == sorted(map(str, before["Tags"]))
    assert project.counts() == {"worker-0": 1}


def test_a_profile_that_is_gone_is_named_and_made_again_without_another_machine(project: Ec2Project) -> None:
    machine = project.machine(MACHINE).id
    delete_profile(project)
    upload_now(project)
    until(lambda: "no instance profile" in project.look().not_stored, "the refusal is known", 150.0)
    assert "no instance profile" in project.explained()
    project.up("--refresh")
    until(lambda: not project.look().not_stored, "it is known to be stored", 150.0)
    assert project.machine(MACHINE).id == machine
    assert project.counts() == {"worker-0": 1}


def test_a_profile_that_is_gone_with_its_machine_is_named_with_what_makes_both_again(project: Ec2Project) -> None:
    delete_profile(project)
    project.box.client("ec2").terminate_instances(InstanceIds=[project.machine(MACHINE).id])
    failed = project.up(fails=True).output
    assert "its instance profile does not exist. Run `pulumi up --refresh`" in failed, failed
    explained = project.explained()
    assert "`pulumi up --refresh`" in explained, explained
    project.up("--refresh", fails=True)  # Pulumi's docker provider reads the objects of a Swarm that is gone
    project.up()
    until_resumed(project, "worker-0", least=0)
