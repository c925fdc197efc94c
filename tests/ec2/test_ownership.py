"""Two logins with the same project, stack and name have two clusters, and neither notices the other. A second computer with the
same state goes on with the cluster, with a user's key of its own."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.box.cloud import Box
from tests.ec2.project import Ec2Project
from tests.ec2.training import ALONE, STEPS, WORKER, until_resumed
from tests.waiting import until
from tfdeploy.backends.ec2.record_bucket import MANIFEST

pytestmark = pytest.mark.full

JOB = f'{ALONE}, ec2={{"retain_record": False}}'


@pytest.fixture(scope="module")
def other(life: Ec2Project, box: Box, box_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ec2Project]:
    """A project of the same name, with a stack of the same name, of somebody who has another login."""
    found = Ec2Project(tmp_path_factory.mktemp("other") / "project", box, box_image)
    found.name = life.name
    found.write(JOB, STEPS)
    found.init()
    yield found
    found.clean()


def owned(project: Ec2Project) -> dict[str, set[str]]:
    """What in AWS has the id of the project's cluster, by kind."""
    ec2, cluster = project.box.client("ec2"), project.ref()
    mine = [{"Name": "tag:tfdeploy:cluster-id", "Values": [cluster["id"]]}]
    live = {"Name": "instance-state-name", "Values": ["pending", "running"]}
    reservations = ec2.describe_instances(Filters=[*mine, live])["Reservations"]
    path = f"/tfdeploy/test-{cluster['id']}/"
    return {
        "instances": {item["InstanceId"] for group in reservations for item in group["Instances"]},
        "groups": {one["GroupId"] for one in ec2.describe_security_groups(Filters=mine)["SecurityGroups"]},
        "keys": {one["KeyPairId"] for one in ec2.describe_key_pairs(Filters=mine)["KeyPairs"]},
        "roles": {one["RoleName"] for one in project.box.client("iam").list_roles(PathPrefix=path)["Roles"]},
    }


def started(project: Ec2Project) -> int:
    """How often the program of the project's only task was started."""
    return project.counts().get("worker-0", 0)


def preview_that_reads_the_key(project: Ec2Project) -> str:
    """A preview of the program that also reports how the private key in the state begins."""
    program = project.program / "__main__.py"
    before = program.read_text()
    read = f"ssh_key.read_stored_key({project.ref()!r})"
    lines = (
        "import pulumi",
        "from tfdeploy.backends.ec2 import ssh_key",
        f"pulumi.log.info('the key begins ' + {read}[:18])",
    )
    program.write_text("\n".join([before, *lines, ""]))
    preview = project.call("preview", "--stack", project.stack)
    program.write_text(before)
    assert preview.exit_code == 0, preview.output
    assert f"{WORKER}: will be" not in preview.output
    return preview.output


def test_two_logins_have_two_clusters(project: Ec2Project, other: Ec2Project) -> None:
    project.write(JOB, STEPS)
    project.up()
    until(lambda: started(project) == 1, "the first one trains")
    before = owned(project)
    assert {kind: len(names) for kind, names in before.items()} == {"instances": 1, "groups": 1, "keys": 1, "roles": 1}
    preview = other.call("preview", "--stack", other.stack).output
    assert f"another cluster of this project, stack and name exists: {project.ref()['id']}, created by" in preview
    other.up()
    until(lambda: started(other) == 1, "the second one trains beside it")
    assert owned(project) == before
    assert all(names.isdisjoint(before[kind]) for kind, names in owned(other).items())
    assert project.up().steps().keys() == {"unchanged"}
    assert other.up().steps().keys() == {"unchanged"}
    assert (started(project), started(other)) == (1, 1)


def test_destroy_of_one_leaves_the_other(project: Ec2Project, other: Ec2Project) -> None:
    before = owned(project)
    done = other.call("destroy", "--yes", "--skip-preview", "--stack", other.stack)
    assert done.exit_code == 0, done.output
    assert not any(owned(other).values())
    assert owned(project) == before
    assert project.up().steps().keys() == {"unchanged"}
    assert (project.sees()["worker-0"], started(project)) == ("running", 1)


def test_a_second_computer_goes_on_and_its_key_replaces_nothing(project: Ec2Project) -> None:
    machine, first = project.machine(WORKER).id, project.env["XDG_STATE_HOME"]
    before = owned(project)
    for file in (project.key, project.key.with_suffix(".pub")):
        file.rename(file.with_name(f"first-{file.name}"))
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(project.key)], check=True)
    project.env["XDG_STATE_HOME"] = str(project.folder / "second")
    assert "the key begins -----BEGIN OPENSSH" in preview_that_reads_the_key(project)
    done = project.up()
    assert done.touched() == {"test-swarm"}
    assert done.steps().keys() <= {"updated", "unchanged"}
    assert project.up().steps().keys() == {"unchanged"}
    address = project.machine(WORKER).private_ip
    for name in ("key", "first-key"):
        keys = ["-i", str(project.folder / name), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"]
        unknown = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
        subprocess.run(["ssh", "-F", "/dev/null", *keys, *unknown, f"ec2-user@{address}", "true"], check=True)
    project.env["XDG_STATE_HOME"] = first
    again = project.up()
    assert again.touched() == set()
    # The Docker provider's own input has the path of ssh's configuration, which is another one here.
    assert again.steps().keys() <= {"updated", "unchanged"}
    assert owned(project) == before
    assert (project.machine(WORKER).id, started(project)) == (machine, 1)


def test_a_lost_state_touches_nothing_and_says_what_exists_and_the_ways_on(project: Ec2Project) -> None:
    lost, before, machine = project.ref(), owned(project), project.machine(WORKER).id
    backend = project.folder / "backend"
    backend.rename(project.folder / "lost")
    backend.mkdir()
    project.init()
    words = " ".join(project.call("preview", "--stack", project.stack).output.split())
    assert f"exists: {lost['id']}, created by {lost['owner']} since 20" in words
    assert f"set `adopt` to {lost['id']}" in words
    assert f"`tfdeploy ls --leftovers --delete --cluster {lost['id']}`" in words

    project.write(f'{JOB}, adopt="{lost["id"]}"', STEPS)
    for command in (("preview",), ("up", "--yes", "--skip-preview")):
        refused = project.call(*command, "--stack", project.stack)
        assert refused.exit_code != 0
        assert f"the cluster {lost['id']} has {WORKER} ({machine})" in " ".join(refused.output.split())
    assert owned(project) == before
    assert (project.sees()["worker-0"], started(project)) == ("running", 1)


def test_a_cluster_whose_machines_are_gone_is_adopted_with_its_run(project: Ec2Project) -> None:
    lost, machine = project.ref(), project.machine(WORKER).id
    until(lambda: MANIFEST in project.stored(), "the record is in S3")
    project.box.kill(machine)
    project.up()
    assert project.ref()["id"] == lost["id"]
    until_resumed(project, "worker-0")
    assert len(owned(project)["instances"]) == 1
    assert project.up().steps().keys() == {"unchanged"}, "`adopt` may stay in the program"


def test_destroy_leaves_nothing(project: Ec2Project) -> None:
    project.destroy()
