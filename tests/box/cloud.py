"""EC2 in a box: its API by moto, and under each instance a machine that really boots.

The machines are containers with an engine, cloud-init and sshd of their own, at the private addresses of their
instances. An EFS file system is a folder that they share; S3 is moto's, at the same address for them and for this
computer; a container answers as their metadata service. Its user has the actions of docs/iam-policy.json, on all
resources. It is never AWS: no rules of a network hold, and there are no GPUs. What AWS answers while it is busy or late
comes with `Box.bad_day` only.
"""

import ipaddress
import json
import logging
import os
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest.mock import patch

import boto3
from moto.moto_api._internal.models import moto_api_backend
from moto.server import ThreadedMotoServer

from tests.box.account import beyond, ec2, holdings
from tests.box.api import REGION, patched
from tests.box.bad_day import BadDay, Days
from tests.box.fleet import Fleet
from tests.box.machine import Floor, Machine
from tests.box.machine_image import image as machine_image
from tests.box.metadata import Notices, metadata
from tests.box.permissions import Permissions
from tests.box.policies import conditions, replaced_profiles
from tests.engine.cli import LABEL, DockerFailed, docker
from tests.engine.registry import registry
from tests.pages import ROOT

PLUGINS = Path(__file__).with_name("provider")
COMMANDS = Path(__file__).with_name("aws")

USER, PROFILE_USER, ADMINISTRATOR = "box", "AKIABOX", "administrator"
"""Access keys: of whoever uses the box by its `environment` or by a profile, and of the tests themselves, which may do everything."""

_POLICY = json.loads((ROOT / "docs/iam-policy.json").read_text())
ACTIONS = frozenset(action for statement in _POLICY["Statement"] for action in statement["Action"])
"""Those of docs/iam-policy.json."""

# The first is that of every account's default VPC; the others are for hosts on which it is taken.
SUBNETS = [ipaddress.IPv4Network(f"172.{number}.0.0/16") for number in (31, 30, 29, 28, 27, 26, 25, 24)]


@dataclass(frozen=True)
class Instance:
    """An instance, as EC2 reports it."""

    id: str
    name: str
    private_ip: str
    state: str
    type: str


class Box:
    """A region of AWS with an account of its own, while it is entered; one at a time in a process."""

    def __init__(self, outer: str) -> None:
        self._outer = outer
        self._name = f"tfdeploy-box-{uuid.uuid4().hex[:8]}"
        self._stack = ExitStack()
        self._calls: Counter[str] = Counter()
        self._notices = Notices()
        self._days = Days()
        self.subnet = SUBNETS[0]
        """The addresses of machines: a VPC that has others cannot have machines."""
        self.permissions = Permissions({USER, PROFILE_USER}, ACTIONS)

    def __enter__(self) -> "Box":
        with ExitStack() as stack:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tfdeploy-box-")))
            (home / "efs").mkdir()
            subnet = stack.enter_context(_network(self._outer, self._name))
            self.subnet = subnet
            gateway = str(subnet[1])
            # Two that share their images: the outer engine trusts only loopback addresses, machines cannot reach them.
            self._near = stack.enter_context(registry(images=home / "images")).address
            self.registry = stack.enter_context(registry(host=gateway, images=home / "images")).address
            floor = Floor(self._outer, self._name, home, self.registry, machine_image(self._outer))
            self._fleet = Fleet(floor)
            stack.enter_context(patched(self._fleet, subnet, self._calls, self._days.wrapped))
            stack.enter_context(self.permissions.enforced())
            stack.enter_context(conditions())
            stack.enter_context(replaced_profiles())
            # AWS's own policies, which roles are given: moto has them only when told so.
            stack.enter_context(patch.dict(os.environ, {"MOTO_IAM_LOAD_MANAGED_POLICIES": "true"}))
            moto_api_backend.reset()
            stack.callback(moto_api_backend.reset)
            self._before = holdings()
            stack.callback(self._fleet.remove)
            stack.enter_context(self._fleet.watched())
            self._endpoint = stack.enter_context(_moto(gateway))
            # The third address is in every subnet AWS's own.
            stack.enter_context(metadata(floor, str(subnet[2]), self._notices))
            stack.callback(self._notices.cancel)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def environment(self) -> dict[str, str]:
        """What leads any AWS SDK here, on this computer; in the machines the endpoint is the same."""
        return {
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": USER,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @property
    def pulumi_environment(self) -> dict[str, str]:
        """What leads Pulumi here: the stand-ins for its AWS provider and for the AWS command besides, found on PATH."""
        return {
            **self.environment,
            "PATH": f"{PLUGINS}:{COMMANDS}:{os.environ['PATH']}",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }

    def client(self, service: str) -> Any:
        """A client of boto3's, which may do everything."""
        return boto3.client(
            service,
            endpoint_url=self._endpoint,
            region_name=REGION,
            aws_access_key_id=ADMINISTRATOR,
            aws_secret_access_key=ADMINISTRATOR,
        )

    def instances(self) -> list[Instance]:
        """All instances, terminated ones too, in the order in which they were run."""
        found = ec2().all_instances()
        return [Instance(one.id, _name_tag(one), _address(one), one.state, one.instance_type) for one in found]

    def run(self, instance_id: str, *command: str) -> str:
        """What a command printed that root ran in the machine."""
        return self._machine(instance_id).run(*command)

    def process(self, instance_id: str) -> int:
        """This computer's process id of the machine's process 1."""
        return int(docker(self._outer, "inspect", "--format", "{{.State.Pid}}", self._machine(instance_id).container))

    def console(self, instance_id: str) -> str:
        """What the machine has written on its console: what GetConsoleOutput answers."""
        return self._machine(instance_id).console().decode(errors="replace")

    def kill(self, instance_id: str) -> None:
        """A machine's sudden death; EC2 then says that the instance is terminated."""
        machine = self._machine(instance_id)
        with machine.lock:
            machine.remove()
            ec2().get_instance(instance_id).terminate()

    def notice_spot(self, instance_id: str, seconds: float) -> None:
        """Announce that AWS takes back a spot instance, and take it when so many seconds are over."""
        self._notices.give(ec2().get_instance(instance_id), seconds)

    def hang(self, instance_id: str) -> None:
        """Have nobody answer in a machine that EC2 says is running."""
        self._machine(instance_id).hang()

    def resume(self, instance_id: str) -> None:
        """Have a machine that hangs go on."""
        self._machine(instance_id).resume()

    def efs(self, file_system_id: str) -> Path:
        """The folder that machines mount as this file system; it is there from its first mount target on."""
        return self._fleet.floor.efs / file_system_id

    def disk(self, volume_id: str) -> Path:
        """The file that is this EBS volume; who writes it before the volume is first attached decides what is on it."""
        return self._fleet.disks.file(volume_id)

    def push(self, image: str) -> str:
        """Bring an image of the outer engine into the registry; the name by which machines pull it."""
        name = image.rpartition("/")[2]
        near = f"{self._near}/{name}"
        docker(self._outer, "tag", image, near)
        try:
            docker(self._outer, "push", "--quiet", near)
        finally:
            docker(self._outer, "rmi", near)
        return f"{self.registry}/{name}"

    def calls(self, action: str) -> int:
        """How many times an action of the API was called: `RunInstances`."""
        return self._calls[action]

    def all_calls(self) -> "Counter[str]":
        """How many times each action has been called until now."""
        return Counter(self._calls)

    @contextmanager
    def bad_day(self, day: BadDay | None = None) -> Iterator[BadDay]:
        """Have AWS answer as on a bad day; the day counts what happened."""
        self._days.now = day or BadDay()
        try:
            yield self._days.now
        finally:
            self._days.now = None

    def left(self) -> dict[str, set[str]]:
        """All that is there beyond what a new account has, and what is left of machines; nothing when all is clean."""
        ours = f"--filter=label={LABEL}={self._name}"
        more = {
            "docker containers": docker(self._outer, "ps", "--all", "--format={{.Names}}", ours),
            "docker volumes": docker(self._outer, "volume", "ls", "--quiet", f"--filter=name={self._name}"),
            "disks": self._fleet.disks.left(),
            "cgroups": "\n".join(path.name for path in Path("/sys/fs/cgroup").glob(f"*/{self._name}-*")),
        }
        return beyond(self._before) | {kind: set(names.split()) for kind, names in more.items() if names}

    def _machine(self, instance_id: str) -> Machine:
        return self._fleet.machines[instance_id]


@contextmanager
def _network(outer: str, name: str) -> Iterator[ipaddress.IPv4Network]:
    """A bridge network on the first subnet that is free."""
    for subnet in SUBNETS:
        with suppress(DockerFailed):
            label = f"--label={LABEL}={name}"
            docker(outer, "network", "create", label, f"--subnet={subnet}", f"--gateway={subnet[1]}", name)
            break
    else:
        raise DockerFailed(f"no subnet of {', '.join(map(str, SUBNETS))} is free")
    try:
        yield subnet
    finally:
        docker(outer, "network", "rm", name)


@contextmanager
def _moto(host: str) -> Iterator[str]:
    """Moto's server, on the gateway of the machines' network: this computer reaches it and they do; its address."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(host, port=0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()
        server._server.server_close()


def _name_tag(instance: Any) -> str:
    return next((str(tag["value"]) for tag in instance.get_tags() if tag["key"] == "Name"), "")


def _address(instance: Any) -> str:
    return str(instance.private_ip or "")
