"""`programs/kelda_mnist`, as somebody runs it who comes from Kelda: on this machine, and on machines in the box."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.box.aws_project import AwsProject
from tests.box.cloud import Box
from tests.ec2.project import SHARED, left
from tests.engine.cli import docker
from tests.engine.images import FOR_IMAGE, SITE, UV
from tests.integration.conftest import ROOT, Call
from tests.programs.program import Program
from tests.verbs import Terminal, Verbs
from tests.waiting import until
from tfdeploy.backends.ec2.backend import BACKEND

pytestmark = pytest.mark.full

MACHINES = ["MACHINE", "ROLE", "PROVIDER", "REGION", "SIZE", "PUBLIC IP", "STATUS"]
CONTAINERS = ["CONTAINER", "MACHINE", "COMMAND", "HOSTNAME", "STATUS", "CREATED", "PUBLIC IP"]
WORKERS = ["worker-0", "worker-1"]
NAMES = ["mnist-ps-m0", "mnist-worker-m0", "mnist-worker-m1"]
REQUIREMENT = "einops==0.8.1"

GATED_INSTALL = """\
import os, sys, time
while sys.orig_argv[1:3] == ["-m", "venv"] and not os.path.exists({gate!r}):
    time.sleep(0.1)
"""
"""As a `sitecustomize`: the environment for the requirements is not created before the file exists."""


class OnEc2(AwsProject, Program):
    """The program on machines in the box; the digits lie on a file system of the user's."""

    def __init__(self, folder: Path, box: Box, image: str) -> None:
        super().__init__(folder, "kelda_mnist")
        self.box = box
        self.env |= box.pulumi_environment
        self.efs = self._shared()
        key = folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        self.configure(
            backend="ec2",
            workers=len(WORKERS),
            ec2={
                "ssh_public_key": f"{key}.pub",
                "ssh_cidrs": ["127.0.0.0/8"],
                "efs": self.efs,
                "retain_record": False,
                "spot": True,
            },
            container={"image": image, "volumes": [f"{SHARED}/packages:{SITE}:ro"]},
            wait="20m",
            data_dir=f"{SHARED}/data",
            requirements=[],
        )

    def _shared(self) -> str:
        efs, ec2 = self.box.client("efs"), self.box.client("ec2")
        name: str = efs.create_file_system(CreationToken=str(self.folder))["FileSystemId"]
        for subnet in ec2.describe_subnets()["Subnets"]:
            efs.create_mount_target(FileSystemId=name, SubnetId=subnet["SubnetId"])
        data = self.box.efs(name) / "data"
        data.mkdir(parents=True)
        shutil.copy(ROOT / "programs/mnist/train/digits.npz", data / "mnist.npz")
        return name

    def described(self) -> dict[str, dict[str, Any]]:
        """What EC2 says of each machine, by name."""
        ec2 = self.box.client("ec2")
        ids = {one.name: one.id for one in self.box.instances() if one.name in NAMES and one.state != "terminated"}
        return {
            name: ec2.describe_instances(InstanceIds=[one])["Reservations"][0]["Instances"][0]
            for name, one in ids.items()
        }

    def clean(self) -> None:
        """Take away whatever the test left, without Pulumi."""
        self.end_provider()
        BACKEND.runner.delete_all(self.ref("mnist"), "", {"volumes": False, "record": False})
        efs = self.box.client("efs")
        for target in efs.describe_mount_targets(FileSystemId=self.efs)["MountTargets"]:
            efs.delete_mount_target(MountTargetId=target["MountTargetId"])
        efs.delete_file_system(FileSystemId=self.efs)


@pytest.fixture
def on_ec2(
    tmp_path: Path, box: Box, box_image: str, engine: str, tensorflow_image: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OnEc2]:
    """The program in the box; this process asks the box too."""
    for name, value in box.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "kelda/state"))
    made = OnEc2(tmp_path / "kelda", box, box_image)
    # TensorFlow, once for all machines: an image with it would take each of them a minute to pull.
    packages = box.efs(made.efs) / "packages"
    container = docker(engine, "create", tensorflow_image)
    docker(engine, "cp", f"{container}:{SITE}", packages)
    docker(engine, "rm", container)
    subprocess.run([*UV, *FOR_IMAGE, "--target", str(packages), REQUIREMENT], check=True)
    yield made
    made.clean()


def tables(text: str) -> tuple[list[list[str]], list[list[str]]]:
    """The rows of the tables of machines and of containers, their heads first."""
    machines, containers = text.split("\n\n")[:2]
    return _rows(machines), _rows(containers)


def _rows(table: str) -> list[list[str]]:
    head, *others = table.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+(?: \S+)*", head)]
    return [[line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)] for line in (head, *others)]


def edit(program: Program, old: str, new: str) -> Call:
    """Change the script, and `pulumi up`."""
    script = program.program / "job/main.py"
    text = script.read_text()
    assert text.count(old) == 1
    script.write_text(text.replace(old, new))
    return program.up()


def lines(program: Program, hostname: str) -> list[str]:
    """What `tfdeploy logs` prints of a task."""
    return program.tfdeploy("logs", hostname).splitlines()


def is_shown(program: Program, hostname: str, status: str) -> bool:
    """Whether `tfdeploy status` has this task so; it works while the first `pulumi up` does."""
    code, out, _ = Verbs(program.program, program.env).call("show", "--json")
    rows = [row for cluster in json.loads(out) for row in cluster["tasks"]] if code == 0 else []
    return any(row["hostname"] == hostname and row["status"] == status for row in rows)


def install_gate(program: Program) -> Path:
    """A file without which the program's requirements are not installed, so that its tasks stay scheduled."""
    gate = program.folder / "gate"
    program.env |= program.customize_python(GATED_INSTALL.format(gate=str(gate)))
    return gate


def assert_trained(program: Program) -> None:
    """The accuracy is a number in the outputs, and the last line of the first worker's log."""
    outputs = program.outputs()
    assert outputs["state"] == "succeeded", outputs["status"]
    assert 0.85 < outputs["accuracy"] < 0.95
    assert lines(program, "worker-0")[-1].endswith(f"MNIST accuracy: {outputs['accuracy']:.4f}")


def test_an_edit_of_the_script_changes_only_the_run(programs: Callable[[str], Program]) -> None:
    assert find_spec("einops") is None, "it must come from the program's requirements"
    program = programs("kelda_mnist")
    program.configure(workers=1)
    program.env["XDG_CACHE_HOME"] = str(program.folder / "cache")
    gate = install_gate(program)
    first_up = program.start("up", "--yes", "--skip-preview", "--stack", program.stack)
    try:
        until(partial(is_shown, program, "worker-0", "installing packages"), "packages are installed")
    finally:
        gate.touch()
    until(partial(is_shown, program, "worker-0", "running"), "worker-0 is running")
    said, _ = first_up.communicate()
    assert first_up.returncode == 0, said
    assert_trained(program)
    first = program.outputs()
    machines, containers = tables(first["status"])
    assert (machines[0], containers[0]) == (MACHINES, CONTAINERS)
    assert [row[3] for row in containers[1:]] == ["ps-0", "worker-0"]
    assert {row[2] for row in containers[1:]} == {"python main.py"}

    done = edit(program, "STEPS = 300", "STEPS = 30")
    assert done.touched() == {"mnist-run"}
    assert program.outputs()["accuracy"] < first["accuracy"]
    containers, machines = tables(program.tfdeploy("show", "-o", "wide"))
    assert (machines[0], containers[0][: len(CONTAINERS)]) == (MACHINES, CONTAINERS)
    assert_stop_asks(program, "mnist-ps-0", "mnist-worker-0")
    program.destroy()


def test_machines_and_tasks_of_one_program_and_a_stop_that_asks(on_ec2: OnEc2) -> None:
    said = on_ec2.up().output
    for name in NAMES:
        assert re.search(rf"{name}: connecting \(i-\w+, [0-9.]+\)[^$]*{name}: connected after \d+ s", said), said
    assert_trained(on_ec2)
    machines, containers = tables(on_ec2.outputs()["status"])
    assert (machines[0], containers[0]) == (MACHINES, CONTAINERS)
    addresses = {name: one["PublicIpAddress"] for name, one in on_ec2.described().items()}
    assert [row[:7] for row in machines[1:]] == [
        [name, role, "Amazon", "us-west-2", "m7i.large", addresses[name], "connected"]
        for name, role in zip(NAMES, ["Master", "Worker", "Worker"], strict=True)
    ]
    assert [(row[1], row[3]) for row in containers[1:]] == list(zip(NAMES, ["ps-0", *WORKERS], strict=True))
    spot = {name for name, one in on_ec2.described().items() if one.get("InstanceLifecycle") == "spot"}
    assert spot == set(NAMES[1:])
    assert_only_ssh_comes_in(on_ec2)

    made = on_ec2.box.calls("RunInstances")
    done = edit(on_ec2, "STEPS = 300", "STEPS = 3")
    assert done.touched() == {"mnist-run"}
    assert on_ec2.box.calls("RunInstances") == made
    assert on_ec2.outputs()["state"] == "succeeded"
    assert_stop_asks(on_ec2, *NAMES, "mnist-ps-0", *(f"mnist-{name}" for name in WORKERS))
    assert on_ec2.described().keys() == set(NAMES)
    on_ec2.destroy()
    assert left(on_ec2.box, on_ec2.name, on_ec2.refs()) == {}


def assert_only_ssh_comes_in(program: OnEc2) -> None:
    """The declared rules let in ssh alone, from where the user comes from. The box enforces no rule."""
    ec2 = program.box.client("ec2")
    (group,) = left(program.box, program.name, program.refs())["groups"]
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])["SecurityGroupRules"]
    ingress = [rule for rule in rules if not rule["IsEgress"]]
    outside = [(rule["FromPort"], rule["ToPort"], rule["CidrIpv4"]) for rule in ingress if "CidrIpv4" in rule]
    assert outside == [(22, 22, "127.0.0.0/8")]
    among = {rule["ReferencedGroupInfo"]["GroupId"] for rule in ingress if "ReferencedGroupInfo" in rule}
    assert among == {group}


def assert_stop_asks(program: Program, *names: str) -> None:
    """`pulumi destroy` says that it will delete these resources, and without a yes it deletes nothing."""
    before = program.outputs()
    stopping = Terminal(["pulumi", "destroy", "--stack", program.stack], program.program, program.env)
    stopping.resize(200, 200)  # so that no line is cut
    until(lambda: "Do you want to perform this destroy" in stopping.read(), "it asks")
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stopping.said)
    assert [name for name in names if f"{name} " not in plain] == [], plain
    stopping.type("\r")  # `no` is what is chosen
    assert stopping.end() != 0
    assert program.outputs() == before
